"""Partition paths of timestamps as Spark SQL writes them: local time, where writers of DataFrames put numbers
(SqlKeyGenerator.convertPartitionPathToSqlType).

No property of a table tells which of the two its writers are; its partitions do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.read_config import READ_ZONE
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import UnsupportedError
from hudi_core.expr.wall_time import zone_of
from hudi_core.filegroup.read.partition_values import DEFAULT_PARTITION, path_parts
from hudi_core.filegroup.write.partition_times import TimeFormat

_NUMBER: Final = re.compile(r"-?\d+")
_LOCAL_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d%3A\d\d%3A\d\d")
_FORMAT: Final = "%Y-%m-%d %H%%3A%M%%3A%S"
"""Escaped whatever the table says about URL encoding."""
_MICROS_PER_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class SqlTimes:
    """Local time of `zone`. `is_given`: the options name it; otherwise it is UTC, as for queries."""

    zone: str
    is_given: bool

    @staticmethod
    def of(
        config: TableConfig, options: Mapping[str, str], columns: pa.Schema, fields: Collection[str], known: list[str]
    ) -> SqlTimes | None:
        """Those of a table with the partitions `known`, None for numbers. `fields` are its partition columns whose
        values are in the path as they are, `columns` the table's; one that is dropped from rows is not among them.

        Raises UnsupportedError where partitions do not show the form or have another one, ConfigError for a zone that
        does not exist.
        """
        found = {name: _forms(config, name, known) for name in fields}
        times = {name for name in fields if name in columns.names and pa.types.is_timestamp(columns.field(name).type)}
        for name in sorted(times):
            forms = found[name]
            if len(forms) != 1 or None in forms:
                shown = "partitions show both, or neither" if forms else "no partition shows"
                raise UnsupportedError(
                    f"the timestamps of {name!r} are microseconds in paths, as by writers of DataFrames, or local "
                    f"time, as by Spark SQL, and {shown} which",
                    path=config.path,
                    remedy="overwrite it with Hudi" if forms else "write its first partition with the table's writer",
                )
        local = {
            name for name in fields if found[name] == {_LOCAL_TIME} and (name in times or name not in columns.names)
        }
        if not local:
            return None
        for name in sorted(local & times):
            kind = columns.field(name).type
            if kind.unit != "us" or kind.tz is None:
                raise UnsupportedError(
                    f"local time of the column {name!r} of {kind} in partition paths", path=config.path
                )
        zone = READ_ZONE.read(options, path=config.path)
        # Arrow takes offsets without the letters of datetime.timezone.
        return SqlTimes(str(zone_of(zone or "UTC")).removeprefix("UTC") or "UTC", zone is not None)

    def texts(self, column: pa.Array, *, path: str) -> pa.Array:
        """Timestamps as text, escaped. Raises FormatError naming `path` for years beyond 1 to 9999."""
        micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        millis = pc.divide(micros, _MICROS_PER_MILLI)  # Towards zero, as TimeUnit.convert does.
        texts = TimeFormat(_FORMAT, self.zone, "MILLISECONDS").texts(millis.fill_null(0), path=path)
        return pc.if_else(column.is_valid(), texts, DEFAULT_PARTITION)


def _forms(config: TableConfig, name: str, known: list[str]) -> set[re.Pattern[str] | None]:
    """The forms of the values of a column in paths, None for one that is neither."""
    found: set[re.Pattern[str] | None] = set()
    for partition in known:
        part = path_parts(partition, config.partition_fields).get(name, DEFAULT_PARTITION).removeprefix(f"{name}=")
        if part != DEFAULT_PARTITION:
            found.add(next((form for form in (_NUMBER, _LOCAL_TIME) if form.fullmatch(part)), None))
    return found
