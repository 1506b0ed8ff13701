"""Row-level indexes by name, and why one is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_core.codec.hfile.block import MAX_ROW
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.metadata_table.indexed_table import IndexDefinition, IndexedTable
from hudi_core.metadata_table.partition_type import is_row_level, moves_rows
from hudi_core.metadata_table.partitions.registry import row_level_type
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows, SecondaryIndexRows
from hudi_core.metadata_table.partitions.row_level import RecordGroups, shard_rows
from tests.support.golden_data import GoldenCase
from tests.support.golden_row_indexes import GoldenRows

Golden = Callable[[str, str], GoldenCase]
INDEX = "secondary_index_idx_name"


def table(ours: GoldenRows, **definitions: IndexDefinition) -> IndexedTable:
    return IndexedTable(ours.table.config, ours.table.schema(), definitions)


def definition(*fields: str, version: int = 2, **options: str) -> IndexDefinition:
    return IndexDefinition(INDEX, "secondary_index", "identity", fields, options, version)


def test_row_level_indexes_are_known_by_name(golden: Golden) -> None:
    assert [
        name
        for name in ("record_index", INDEX, "secondary_index_", "files", "expr_index_x", "column_stats")
        if is_row_level(name)
    ] == [
        "record_index",
        INDEX,
    ]
    indexed = table(GoldenRows.open(golden("9", "mdt_all_cow").table))
    assert row_level_type(INDEX, indexed).row_file_ids({None: 2}) == [
        "secondary-index-idx-name-0000-0",
        "secondary-index-idx-name-0001-0",
    ]
    assert row_level_type("record_index", indexed).row_file_ids({"a": 1, "b": 1}) == [
        "record-index-a-0000-0",
        "record-index-b-0000-0",
    ]


def test_compactions_move_no_rows(golden: Golden) -> None:
    assert [name for name in (None, "UPSERT", "CLUSTER", "COMPACT", "LOG_COMPACT") if moves_rows(name)] == [
        None,
        "UPSERT",
        "CLUSTER",
    ]
    ours = GoldenRows.open(golden("8", "mor_compacted").table)
    rows = RecordIndexRows(RecordGroups({None: 3}), ours.schema, ours.table.config.timezone)
    recorded = dict(ours.replay(rows))
    (compaction,) = [item.requested_time for item in ours.table.timeline().commits() if item.action == "commit"]
    assert recorded[compaction] == [{}, {}, {}]
    assert sum(len(cells) for shards in recorded.values() for cells in shards) > 0


def test_their_rows_are_made_by_definition_and_version(golden: Golden) -> None:
    ours = GoldenRows.open(golden("9", "mdt_all_cow").table)
    rows = row_level_type(INDEX, table(ours, **{INDEX: definition("name")})).rows({None: 4}, ours.schema, "UTC")
    assert rows == SecondaryIndexRows(INDEX, "name", 4, ours.schema, by_value=True)
    found = row_level_type("record_index", table(ours)).rows({None: 3}, ours.schema, "UTC")
    assert found == RecordIndexRows(RecordGroups({None: 3}), ours.schema, "UTC")
    counts = {"p": 10**9, "q": 0}
    assert row_level_type("record_index", table(ours)).group_counts(counts) == {None: 89}
    parts = replace(definition(isPartitioned="true"), name="record_index")
    assert row_level_type("record_index", table(ours, record_index=parts)).group_counts(counts) == {"p": 10, "q": 1}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (("amount",), UnsupportedError, "'amount' of type double"),
        (("absent",), UnsupportedError, "no column that data files hold"),
        (("name", "qty"), CorruptFileError, "names its one column"),
        ((), CorruptFileError, "names its one column"),
    ],
)
def test_an_index_that_cannot_be_kept_is_refused(
    golden: Golden, fields: tuple[str, ...], error: type[Exception], message: str
) -> None:
    ours = GoldenRows.open(golden("9", "mdt_all_cow").table)
    with pytest.raises(error, match=message):
        row_level_type(INDEX, table(ours, **{INDEX: definition(*fields)})).rows({None: 4}, ours.schema, "UTC")
    with pytest.raises(CorruptFileError, match=INDEX):
        row_level_type(INDEX, table(ours)).rows({None: 4}, ours.schema, "UTC")


def test_keys_that_no_index_holds_are_refused_with_what_helps() -> None:
    """To create the index again would fail as well."""
    keys = pa.array(["a", "b" * (MAX_ROW + 1)])
    with pytest.raises(UnsupportedError, match="32768 bytes") as caught:
        shard_rows(keys, keys, (0, 1), b"")
    assert "metadata drop" in (caught.value.remedy or "")
    assert shard_rows(keys[:1], keys[:1], (0, 1), b"").num_rows == 1
