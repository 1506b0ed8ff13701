"""Reads whose answer differs from real Hudi's, and why. Each line stands in docs/reference/differences.md with its
evidence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import HudiError
from tests.support.rows import assert_same_rows, rows_of


@dataclass(frozen=True)
class Refused:
    """We refuse the read by name."""

    error: type[HudiError]
    words: str

    def check(self, read: Callable[[], pa.Table], expected: pa.Table) -> None:
        with pytest.raises(self.error, match=self.words):
            read()


@dataclass(frozen=True)
class Other:
    """Our rows differ from this file's: we have `rows` rows, of which `extra` are not in it, and lack `missing` of its
    own.
    """

    rows: int
    extra: int
    missing: int

    def check(self, read: Callable[[], pa.Table], expected: pa.Table) -> None:
        found = read()
        mine, theirs = rows_of(found, expected.column_names), rows_of(expected, expected.column_names)
        assert (found.num_rows, (mine - theirs).total(), (theirs - mine).total()) == (
            self.rows,
            self.extra,
            self.missing,
        )


@dataclass(frozen=True)
class CommittedAfter:
    """Hudi 1.0.2 returns rows of commits before the range, too: all its rows that were committed after `begin` are
    ours, and no others.
    """

    begin: str

    def check(self, read: Callable[[], pa.Table], expected: pa.Table) -> None:
        kept = expected.filter(pc.greater(expected["_hoodie_commit_time"], self.begin))
        assert 0 < kept.num_rows < expected.num_rows
        assert_same_rows(read(), kept, ignore=())


@dataclass(frozen=True)
class Images:
    """As Other, for change data: row images are compared as JSON values, and a null member is one that is not there."""

    rows: int
    extra: int
    missing: int

    def check(self, read: Callable[[], pa.Table], expected: pa.Table) -> None:
        found = read()
        mine, theirs = changes_of(found), changes_of(expected)
        assert (found.num_rows, (mine - theirs).total(), (theirs - mine).total()) == (
            self.rows,
            self.extra,
            self.missing,
        )


def changes_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The multiset of changes, whatever the blanks and the order of members in their images."""
    return Counter(
        (row["op"], row["ts_ms"], *(image_of(row[name]) for name in ("before", "after"))) for row in table.to_pylist()
    )


def image_of(text: str | None) -> str | None:
    value = None if text is None else json.loads(text)
    return (
        None
        if value is None
        else json.dumps({name: item for name, item in value.items() if item is not None}, sort_keys=True)
    )


@dataclass(frozen=True)
class SameAs:
    """Another case had the same input, so its rows are the right ones; `ignore` are columns that carry times and
    names.
    """

    case: str
    ignore: tuple[str, ...] = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")

    def check(self, read: Callable[[str], pa.Table], case: str) -> None:
        assert_same_rows(read(case), read(self.case), ignore=self.ignore)


@dataclass(frozen=True)
class RowCount:
    """No other table has the same rows; their number is known from what was written."""

    rows: int

    def check(self, read: Callable[[str], pa.Table], case: str) -> None:
        assert read(case).num_rows == self.rows


UNFILTERED = {
    "archived_timeline_cow": ("20261120223450319_20261120223454467",),
    "archived_timeline_mor": ("20261120224109210_20261120224116127",),
    "cdc_cow": ("20261120230004668_20261120230006532",),
    "cdc_cow_op_key": ("20261120230012328_20261120230014218",),
    "cdc_mor": ("20261120230008263_20261120230010604",),
    "clustered_cow": ("20261120223839580_20261120223843969",),
    "clustered_mor": ("20261120223533116_20261120223536064",),
    "cow_basic": ("20261120223226707_20261120223229820", "20261120223226707_20261120223232811"),
    "delete_partition_cow": ("20261120223538598_20261120223541705",),
    "delete_partition_mor": ("20261120223956413_20261120223957919",),
    "insert_overwrite_partition_cow": ("20261120223918236_20261120223921536",),
    "insert_overwrite_partition_mor": ("20261120223657901_20261120223659848",),
    "mor_basic": ("20261120223238386_20261120223240827",),
    "mor_compacted": ("20261120223304192_20261120223311689",),
    "partial_update_merge_into": ("20261120223456285_20261120223500828",),
    "restored_then_written": ("20261120223743115_20261120223746105",),
    "rolled_back_cow": ("20261120223943907_20261120223948615",),
    "rolled_back_mor": ("20261120223428709_20261120223437210",),
}
"""Incremental answers of Hudi 1.0.2 that hold whole file groups: docs/reference/differences.md, section Incremental."""

DIFFERENCES: dict[tuple[str, str, str], Refused | Other | CommittedAfter | Images] = {
    # Three versions of Hudi merge payload classes in three ways: docs/reference/differences.md, section Merge.
    ("6", "payload_default", "snapshot.by-1.2.0.parquet"): Other(45, 2, 0),
    ("6", "payload_event_time", "snapshot.by-1.2.0.parquet"): Other(45, 2, 0),
    ("6", "payload_overwrite_latest", "snapshot.by-1.2.0.parquet"): Other(45, 10, 7),
    ("6", "payload_overwrite_nondefaults", "snapshot.by-1.2.0.parquet"): Other(45, 13, 10),
    ("6", "payload_partial_update", "snapshot.by-1.2.0.parquet"): Other(45, 3, 0),
    ("8", "payload_event_time", "snapshot.by-1.2.0.parquet"): Other(43, 0, 2),
    ("8", "payload_overwrite_nondefaults", "snapshot.by-1.2.0.parquet"): Other(43, 3, 2),
    ("8", "payload_partial_update", "snapshot.by-1.2.0.parquet"): Other(43, 3, 2),
    # Hudi 0.15 takes partition columns from the path where 1.2.0 takes the stored values: section Partition columns.
    ("6", "custom_keygen", "snapshot.by-1.2.0.parquet"): Other(60, 60, 60),
    ("6", "timestamp_keygen_epochmillis", "snapshot.by-1.2.0.parquet"): Other(60, 60, 60),
    ("6", "timestamp_keygen_string", "snapshot.by-1.2.0.parquet"): Other(60, 60, 60),
    # Hudi 0.15 and 1.0.2 lose entries of change-data logs and repeat one row of a replaced group: section CDC.
    ("6", "cdc_cow", "cdc_000_20261120225238878.parquet"): Images(122, 23, 19),
    ("6", "cdc_cow", "cdc_20261120225230827_20261120225234659.parquet"): Images(24, 3, 0),
    ("6", "cdc_cow", "cdc_20261120225234659_20261120225237741.parquet"): Images(6, 1, 0),
    ("6", "cdc_cow_op_key", "cdc_000_20261120225254196.parquet"): Images(122, 23, 19),
    ("6", "cdc_cow_op_key", "cdc_20261120225251325_20261120225252115.parquet"): Images(24, 3, 0),
    ("6", "cdc_cow_op_key", "cdc_20261120225252115_20261120225253276.parquet"): Images(6, 1, 0),
    ("6", "cdc_mor", "cdc_000_20261120225248155.parquet"): Images(102, 3, 0),
    ("6", "cdc_mor", "cdc_20261120225243930_20261120225244947.parquet"): Images(24, 3, 0),
    ("6", "cdc_mor", "cdc_20261120225244947_20261120225246248.parquet"): Images(6, 1, 0),
    ("8", "cdc_cow", "cdc_000_20261120230006532.parquet"): Images(122, 20, 19),
    ("8", "cdc_cow", "cdc_20261120230004668_20261120230005449.parquet"): Images(24, 1, 0),
    ("8", "cdc_cow", "cdc_20261120230005449_20261120230006031.parquet"): Images(6, 1, 0),
    ("8", "cdc_cow_op_key", "cdc_000_20261120230014218.parquet"): Images(122, 20, 19),
    ("8", "cdc_cow_op_key", "cdc_20261120230012328_20261120230013223.parquet"): Images(24, 1, 0),
    ("8", "cdc_cow_op_key", "cdc_20261120230013223_20261120230013777.parquet"): Images(6, 1, 0),
    ("8", "cdc_mor", "cdc_000_20261120230010604.parquet"): Images(102, 1, 0),
    ("8", "cdc_mor", "cdc_20261120230008263_20261120230009016.parquet"): Images(24, 1, 0),
    ("8", "cdc_mor", "cdc_20261120230009016_20261120230009546.parquet"): Images(6, 1, 0),
    **{
        ("8", case, f"incremental_{times}.parquet"): CommittedAfter(times.split("_")[0])
        for case, ranges in UNFILTERED.items()
        for times in ranges
    },
}

UNANSWERED: dict[tuple[str, str], SameAs | RowCount] = {
    # Hudi 0.15 casts the path `2024-01-01-07` to a long: section Partition columns.
    ("6", "timestamp_keygen_hive"): RowCount(60),
    # Hudi 1.x cannot read HFile blocks of a table's own log files; mor_parquet_log had the same input: section Log
    # blocks.
    ("8", "mor_hfile_log"): SameAs("mor_parquet_log"),
    ("9", "mor_hfile_log"): SameAs("mor_parquet_log"),
}
