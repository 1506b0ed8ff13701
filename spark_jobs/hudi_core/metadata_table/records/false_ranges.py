"""Ranges that real Hudi records of Parquet files and that are not theirs, and how they show
(ParquetUtils.readColumnStatsFromMetadata of 0.15 to 1.2).

It records what parquet-mr says of a chunk, also where parquet-mr knows nothing:

- A chunk with NaN has no range to parquet-mr, whose fields hold 0.0 and 0.0 then (Statistics.DoubleBuilder). These are
  recorded (apache/hudi#18754). A true minimum of zero is -0.0 to parquet-mr, so the sign distinguishes the two.
- A chunk whose least and greatest value have 4096 bytes or more has no statistics at all
  (ParquetMetadataConverter.MAX_STATS_SIZE). Recorded are no bounds, and as many nulls as values (apache/hudi#18755).

The range of a file merges those of its row groups, and the range of a partition those of its files
(HoodieColumnRangeMetadata.merge): a zero counts as a bound, a bound that is not there does not, and the nulls add up.

Ranges of rows, as of log files, are right: NaN is the greatest value (ConvertingGenericData.compare), and nulls are
counted. Their sizes are 0.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.metadata_table.records.file_statistics import ColumnRange

_FLOATS: Final = frozenset({"float", "double"})
_LONG: Final = 2048
"""The least bytes of a chunk without statistics, before compression: it stores the longer one of two values of 4096."""


def may_be_false(found: ColumnRange) -> bool:
    """Whether the range recorded of a file is like one that Hudi makes without knowing any."""
    size, least = found.total_uncompressed_size, found.least
    if found.null_count >= found.value_count:
        return least is None and found.greatest is None and size >= _LONG
    if least is None or least.logical not in _FLOATS:
        return False
    return size > 0 and least.value == 0 and math.copysign(1, least.value) > 0


def may_lack_numbers(least: pa.Array, greatest: pa.Array, sizes: pa.Array) -> pa.Array:
    """Where the ranges of a column in files may lack values beside NaN; `sizes` are the bytes before compression.

    Those that hold zero, as that of a row group with NaN may be in them. Not those from -0.0 on, of columns without
    negative values: they have their zero from another row group, if any is such.
    """
    if not pa.types.is_floating(least.type):
        return pa.repeat(pa.scalar(False), len(least))
    low, high = (bounds.to_numpy(zero_copy_only=False) for bounds in (least, greatest))
    holds_zero = ~((low > 0) | (high < 0)) & ~((low == 0) & np.signbit(low))
    return pa.array(holds_zero & (sizes.to_numpy(zero_copy_only=False) > 0))


def may_hide_texts(least: pa.Array, greatest: pa.Array, sizes: pa.Array) -> pa.Array:
    """Where files that are recorded without bounds, as of nulls alone, may have values; arguments as for
    may_lack_numbers.
    """
    return pc.and_(pc.and_(pc.is_null(least), pc.is_null(greatest)), pc.greater_equal(sizes, _LONG))


def may_lack_values(least: pa.Array, greatest: pa.Array, nulls: pa.Array, sizes: pa.Array) -> pa.Array:
    """Where the ranges of a column in whole partitions may be merged with such ones of files; null where there is no
    bound.
    """
    if pa.types.is_floating(least.type):
        return pc.invert(pc.or_(pc.greater(least, 0), pc.less(greatest, 0)))
    if pa.types.is_string(least.type) or pa.types.is_large_string(least.type):
        return pc.and_(pc.greater(nulls, 0), pc.greater_equal(sizes, _LONG))
    return pa.repeat(pa.scalar(False), len(least))
