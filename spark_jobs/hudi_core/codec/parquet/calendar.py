"""In which calendar the dates and timestamps of a Parquet file are, as Spark marks it in the footer: the proleptic
Gregorian one, or the hybrid one with the Julian calendar before it (DataSourceUtils.getRebaseSpec, RebaseDateTime).

A file without a mark is in the calendar that a reader's options say: files of Hudi's Avro writer have none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.footer import schema_of
from hudi_core.codec.parquet.leaves import leaf_types

SPARK_VERSION: Final = "org.apache.spark.version"
_HYBRID: Final = b"3.0.0", b"org.apache.spark.legacyDateTime"
_HYBRID_INT96: Final = b"3.1.0", b"org.apache.spark.legacyINT96"
"""Of files of versions before this one, and of files with this key, the values are in the hybrid calendar: those of
INT96, and others. Spark compares versions as texts.
"""
_PROLEPTIC: Final = "3.1.0"
"""From this version on a file without those keys is in the proleptic calendar."""
_FIRST_DAY: Final = (dt.date(1582, 10, 15) - dt.date(1970, 1, 1)).days
"""RebaseDateTime.lastSwitchJulianDay: from then on a day has the same number in both calendars."""
_FIRST_SECOND: Final = -2_208_988_800
"""RebaseDateTime.lastSwitchJulianTs, of 1900-01-01: before it Spark converts local times of zones, too."""
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def hybrid_columns(metadata: pq.FileMetaData, schema: pa.Schema) -> list[str]:
    """The columns of a file of `schema` that hold, or may hold, numbers which are of another date or time in the hybrid
    calendar, in which the file is: by the least value of each column chunk, where the footer has it.
    """
    keys = metadata.metadata or {}
    version = keys.get(SPARK_VERSION.encode())
    if version is None:
        return []
    hybrid, hybrid_int96 = (version < first or key in keys for first, key in (_HYBRID, _HYBRID_INT96))
    if not (hybrid or hybrid_int96):
        return []
    found: list[str] = []
    parquet = schema_of(metadata)
    leaves = [(field.name, kind) for field in schema for kind in leaf_types(field.type)]
    for number, (name, kind) in enumerate(leaves):
        is_int96 = parquet.column(number).physical_type == "INT96"
        first = _first_alike(kind, is_int96=is_int96)
        is_hybrid = hybrid_int96 if is_int96 else hybrid
        if is_hybrid and first is not None and name not in found and _may_be_below(metadata, number, first):
            found.append(name)
    return found


def proleptic_version(footers: Iterable[Mapping[str, str]]) -> str | None:
    """The version of Spark that the footer of a new file names, whose rows come from base files with these footers,
    none of them with hybrid_columns, and from log files; None where one of them is in the calendar of the reader's
    options.

    Rows of log files are proleptic: Hudi's AvroSerializer writes them so, and its AvroDeserializer reads them so,
    unless options of Spark's sessions say otherwise.
    """
    versions = [footer.get(SPARK_VERSION) for footer in footers]
    return None if None in versions else max(_PROLEPTIC, *filter(None, versions), "")


def _first_alike(kind: pa.DataType, *, is_int96: bool) -> int | None:
    """The first number of a type that both calendars give the same date or time. None for types without a calendar:
    local timestamps are none of Spark's.
    """
    if pa.types.is_date32(kind):
        return _FIRST_DAY
    if pa.types.is_timestamp(kind) and (kind.tz is not None or is_int96):
        return _FIRST_SECOND * _PER_SECOND[kind.unit]
    return None


def _may_be_below(metadata: pq.FileMetaData, number: int, first: int) -> bool:
    """Whether a column may hold a number below `first`: a column chunk has one, or does not say. INT96 never says."""
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(number)
        found = chunk.statistics if chunk.is_stats_set and chunk.physical_type != "INT96" else None
        if found is not None and found.has_min_max:
            is_below = found.min_raw < first
        else:
            nulls = found.null_count if found is not None and found.has_null_count else 0
            is_below = chunk.num_values > nulls
        if is_below:
            return True
    return False
