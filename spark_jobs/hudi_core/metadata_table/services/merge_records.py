"""How two whole records of one key merge when they are written anew (HoodieMetadataPayload.preCombine,
MetadataPartitionType of 0.15 and 1.x).

What readers make of two records, as data of the newer one's form: lists of files are combined, ranges widened; of all
others the newer stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.record import RecordType, files_datum, files_record
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules
from hudi_core.metadata_table.records.files import merge as merge_files
from hudi_core.metadata_table.records.stat_values import Bound, widened_float

_FILES: Final = frozenset({RecordType.PARTITIONS, RecordType.FILES})
_STATISTICS: Final = frozenset({RecordType.COLUMN_STATS, RecordType.PARTITION_STATS})
_BODY: Final = "ColumnStatsMetadata"
_SUMS: Final = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_RULES: Final = ColumnStatsRules()
_WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
}
"""What a column of a kind may have been widened to. The other way a bound would be cut, and the range too narrow."""
_NUMBERS: Final = frozenset({"int", "long", "float", "double"})
_ENDS: Final[Mapping[str, tuple[float, float]]] = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "float": (-math.inf, math.nan),
}
"""The least and the greatest value of a kind; NaN is the greatest there is."""

Data = Mapping[str, Any]


def merge_data(key: str, older: Data, newer: Data, *, path: str) -> Data:
    """The datum that stands for both; `path` is the file of `newer`. Raises CorruptFileError when they are of different
    kinds.
    """
    kind = newer.get("type")
    if older.get("type") != kind:
        raise CorruptFileError(
            f"metadata records {key!r} of the types {older.get('type')!r} and {kind!r} do not merge", path=path
        )
    if kind in _FILES:
        return files_datum(
            merge_files(files_record(key, older, path=path), files_record(key, newer, path=path), path=path)
        )
    return _merged_statistics(key, older, newer, path) if kind in _STATISTICS else newer


def _merged_statistics(key: str, older: Data, newer: Data, path: str) -> Data:
    first, second = _RULES.decode(key, dict(older), path=path), _RULES.decode(key, dict(newer), path=path)
    merged = _RULES.merge(first, second, path=path)
    if merged is second:
        return newer
    before, after = older[_BODY], newer[_BODY]
    same_form = before.get("valueType") == after.get("valueType")
    low, high = ((before.get(end), after.get(end)) for end in ("minValue", "maxValue"))
    least = _bound(merged.least, (first.least, low[0]), (second.least, low[1]), same_form=same_form, upper=False)
    greatest = _bound(
        merged.greatest, (first.greatest, high[0]), (second.greatest, high[1]), same_form=same_form, upper=True
    )
    sums = {name: (before.get(name) or 0) + (after.get(name) or 0) for name in _SUMS}
    return {**newer, _BODY: {**after, **sums, "minValue": least, "maxValue": greatest}}


def _bound(
    merged: Bound | None,
    older: tuple[Bound | None, Any],
    newer: tuple[Bound | None, Any],
    *,
    same_form: bool,
    upper: bool,
) -> Any:
    """The stored form of a merged bound: that of the record it comes from.

    Where the newer one's type cannot hold it, the end of that type: readers of 0.15 take no bound for one that no row
    meets. None, nothing is known, where the types have no order in common.
    """
    if merged is None:
        return None
    if merged is newer[0]:
        return newer[1]
    bound, wrapped = older
    if same_form and (newer[1] is None or wrapped[0] == newer[1][0]):
        return wrapped
    if newer[0] is None or bound is None:
        return None
    if newer[0].kind not in _WIDER.get(bound.kind, ()):
        ends = _ENDS.get(newer[0].kind) if bound.kind in _NUMBERS else None
        return None if ends is None else (newer[1][0], {"value": ends[upper]})
    is_float = (bound.kind, newer[0].kind) == ("float", "double")
    return newer[1][0], {"value": widened_float(bound.value) if is_float else type(newer[0].value)(bound.value)}
