"""The next writes of real Hudi on a table of which we have built or created an index: by the options that keep it, and
with every index option on, for which they begin the indexes that are missing.

Each index that is listed stays listed, is true, and answers; no row is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import pytest

from tests.interop.changes import user_columns
from tests.interop.fully_indexed_table import EXPRESSION, QUERIES, SECONDARY, SWITCHES, FullyIndexedTable
from tests.interop.judged import JUDGES, KINDS, OTHERS
from tests.interop.real_hudi import RealHudi
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

LABELS = {
    **JUDGES,
    **OTHERS,
    "6-by-1.0.2": "hudi_1_0",
    "6-by-1.1.1": "hudi_1_1",
    "8-by-1.1.1": "hudi_1_1",
    "9-by-1.1.1": "hudi_1_1",
}
"""The writers that there are of each table version."""
BY_SECONDARY = {"hoodie.index.name": "by_name", "hoodie.metadata.index.secondary.column": "name"}
BY_EXPRESSION = {
    "hoodie.index.name": "by_day",
    "hoodie.metadata.index.expression.column": "ts",
    "hoodie.metadata.index.expression.options": "expr=from_unixtime,format=yyyy-MM-dd",
}


def switches(*kinds: str) -> dict[str, str]:
    """The options that enable these kinds."""
    return {name: value for name, value in SWITCHES.items() if any(kind in name for kind in kinds)}


ASKED = {
    "column_stats": switches("column.stats.enable"),
    "bloom_filters": switches("bloom.filter.enable"),
    "record_index": switches("record.index.enable"),
    "partition_stats": switches("partition.stats.enable"),
    SECONDARY: BY_SECONDARY,
    EXPRESSION: BY_EXPRESSION,
}
"""What we are asked to build, by index."""
NEEDED = {"partition_stats": "column_stats", SECONDARY: "record_index"}
KEPT = {
    "column_stats": switches("column"),
    "bloom_filters": switches("bloom"),
    "record_index": switches("record"),
    "partition_stats": switches("column", "partition"),
    SECONDARY: switches("record"),
    EXPRESSION: {},
}
"""What a writer enables that keeps the index; the rest is its defaults."""
FROM_8 = ("partition_stats", SECONDARY, EXPRESSION)
Way = Literal["run", "create"]
Writer = Literal["kept", "all"]
Case = tuple[str, str, str, Way, Writer]


def cases() -> Iterator[Case]:
    """Label, table type, index, how we make it, and what the writer enables."""
    for label in LABELS:
        for kind in KINDS:
            for index in ASKED:
                if label[0] == "6" and index in FROM_8:
                    continue
                for way in ("run", "create"):
                    if way == "create" and index in (SECONDARY, EXPRESSION):
                        continue  # has no name for it
                    for writer in ("kept", "all"):
                        yield label, kind, index, way, writer


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], FullyIndexedTable]:
    """The tables that cases copy, by label and type: made by the case that is first to need one."""
    return {}


def copied(
    tables: dict[tuple[str, str], FullyIndexedTable], hudi: RealHudi, folder: Path, label: str, kind: str
) -> FullyIndexedTable:
    if (label, kind) not in tables:
        made = FullyIndexedTable.without_metadata(hudi, folder.parent / f"{label}-{kind}" / "table", kind, label[0])
        tables[label, kind] = made
    return tables[label, kind].copy(folder / "table")


@pytest.mark.parametrize(("label", "kind", "index", "way", "writer"), cases())
def test_what_is_listed_stays_listed_and_true(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tables: dict[tuple[str, str], FullyIndexedTable],
    label: str,
    kind: str,
    index: str,
    way: Way,
    writer: Writer,
) -> None:
    table = copied(tables, request.getfixturevalue(LABELS[label]), tmp_path, label, kind)
    created = (NEEDED.get(index), index if way == "create" else None)
    table.ours("metadata_create", partitions=tuple(filter(None, created)))
    if way == "run":
        table.index(ASKED[index])
    table.options |= {"hoodie.metadata.enable": "true", **options_of(index, writer, label)}
    goes_on(table)


def options_of(index: str, writer: Writer, label: str) -> Mapping[str, str]:
    """Of the writer; with all options on also one of a secondary index, which the writer would define itself."""
    if writer == "kept":
        return KEPT[index]
    return {**SWITCHES, **({} if label[0] == "6" else BY_SECONDARY)}


def is_left_so(found: str, begun: frozenset[str], release: str) -> bool:
    """Whether real Hudi leaves an index so that it begins with a write; no query minds. In a secondary index it keeps
    values that the write has changed; 0.15 begins bloom_filters and column_stats without the files that are there.
    """
    if SECONDARY in found:
        return SECONDARY in begun
    without_record = "has a filter in its footer, and none here" in found or "has no statistics of" in found
    return release == "0.15.0" and found.partition(" ")[0] in begun and without_record


def goes_on(table: FullyIndexedTable) -> None:
    """Two writes, and a query by every index."""
    before, listed = table.metadata_files(), table.config.metadata_partitions
    table.upsert(4)
    begun = table.config.metadata_partitions - listed
    table.upsert(4, fresh=False)
    assert table.config.metadata_partitions >= listed | begun
    table.assert_metadata_kept(before)
    assert_same_rows(user_columns(read_rows(table.base, "on")), table.rows)
    assert [found for found in table.found() if not is_left_so(found, begun, table.hudi.version)] == []
    requested = [where for name, predicates in QUERIES.items() if name in listed | begun for where in predicates[:1]]
    answers = table.hudi.ask("skipping", base=str(table.base), predicates=["amount >= 0", *requested])
    assert [answer for answer in answers if not answer["same"]] == []
    assert answers[0]["rows"] == table.rows.num_rows
