"""A table examined: by its doctor, its metadata table beside the data, and how fast that answers."""

from __future__ import annotations

from collections.abc import Collection

from hudi_core.table import HudiTable
from hudi_health.doctor.examine import DoctorReport, examine
from hudi_health.perf import Timings, measure
from hudi_health.validate.check import ValidationReport
from hudi_health.validate.run import validate


def doctor_report(table: HudiTable, *, files: bool = True) -> DoctorReport:
    """With `files` its data files are listed, too. Raises HudiError for a table that cannot be read at all."""
    return examine(table.context, files=files)


def validate_metadata(table: HudiTable) -> ValidationReport:
    """Every listed data file is read once, and the rows of the latest slices. Raises ConfigError without a metadata
    table.
    """
    return validate(table.context, table.data)


def metadata_timings(table: HudiTable, partition_types: Collection[str] = ()) -> Timings:
    """Of lookups in these partitions of the metadata table, or in all, beside the same lookups in the storage."""
    return measure(table.context, table.data, partition_types)
