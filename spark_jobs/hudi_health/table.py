"""Examines an open table: the doctor's report, the validation of the metadata table, and the times of its lookups."""

from __future__ import annotations

from collections.abc import Collection

from hudi_core.table import HudiTable
from hudi_health.doctor.examine import DoctorReport, examine
from hudi_health.perf import Timings, measure
from hudi_health.validate.check import ValidationReport
from hudi_health.validate.run import validate


def doctor_report(table: HudiTable, *, files: bool = True) -> DoctorReport:
    """Returns the doctor's report; with `files`, also on data files. Raises HudiError for an unreadable table."""
    return examine(table.context, files=files)


def validate_metadata(table: HudiTable) -> ValidationReport:
    """Compares the metadata table with the data. It reads every listed data file once, and the rows of the latest
    slices. Raises ConfigError without a metadata table.
    """
    return validate(table.context, table.data)


def metadata_timings(table: HudiTable, partition_types: Collection[str] = ()) -> Timings:
    """Measures lookups in these partitions of the metadata table, or in all, and the same lookups in the storage."""
    return measure(table.context, table.data, partition_types)
