"""Projection, filters, refusals and options of the slice reader; what it returns for whole tables is in
tests/golden.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock, encode_block
from hudi_core.codec.log.content import encode_avro_block
from hudi_core.codec.log.delete_columns import delete_columns
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, CorruptFileError, UnsupportedError
from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.tree import Column, Compare, Literal, Or
from hudi_core.filegroup.read import slice_reader as reader_module
from hudi_core.filegroup.read.log_records import block_batches
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.read_spec import ReaderSpec, RowFilter
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.index.page_skipping import row_choice
from hudi_core.metadata_table.records.bounds import Bound, to_arrow
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import ByteRange
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.schemas import SchemaHistory, parse_schema_history
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.dropped_columns import name_dropped
from tests.support.golden_data import GoldenCase
from tests.support.log_files import deletes
from tests.support.rows import assert_same_rows
from tests.support.slice_readers import RowGroups, opened, rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def compared(column: str, operator: str, value: Any) -> Compare:
    return Compare(operator, Column((column,)), Literal.of(value))


@pytest.mark.parametrize(
    "columns", [["name"], ["qty", "_hoodie_commit_time"], ["id", "dt"], ["_hoodie_is_deleted"], ["dt"]]
)
@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_projection_gives_the_same_values(golden: Golden, version: str, columns: list[str], snapshot: bool) -> None:
    reader, slices = opened(golden(version, "payload_default").table, snapshot=snapshot)
    whole, part = rows(reader, slices), rows(reader, slices, columns)
    assert part.column_names == columns
    assert part == whole.select(columns)
    assert rows(replace(reader, spec=replace(reader.spec, columns=tuple(columns))), slices) == part


def test_dropped_partition_column_alone(golden: Golden) -> None:
    case = golden("6", "drop_partition_columns")
    reader, slices = opened(case.table)
    expected = pq.read_table(case.expected / "snapshot.parquet", columns=["dt"])
    assert sorted(rows(reader, slices, ["dt"])["dt"].to_pylist()) == sorted(expected["dt"].to_pylist())


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_dropped_partition_column_that_the_schema_names(golden: Golden, version: str) -> None:
    """Hudi's row writer leaves it there, and no values of it in the file."""
    case = golden(version, "drop_partition_columns")
    name_dropped(case.table)
    expected = pq.read_table(case.expected / "snapshot.parquet")
    reader, slices = opened(case.table)
    found = rows(reader, slices)
    assert sorted(found.column_names) == sorted(expected.column_names)
    assert_same_rows(found.select(expected.column_names), expected, ignore=())


def test_unknown_column_is_a_config_error_that_lists_the_columns(golden: Golden) -> None:
    reader, slices = opened(golden("6", "mor_log_only").table)
    with pytest.raises(ConfigError, match=r"'nope'.*_hoodie_commit_time"):
        list(reader.read(slices[0], ["id", "nope"]))


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_small_budget_reads_the_same(golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, slices = opened(golden(version, "types_mor").table)
    whole = rows(reader, slices)
    monkeypatch.setattr(reader_module, "QUERY_MEMORY_BYTES", 1)
    assert rows(SliceReader(reader.storage, reader.spec), slices) == whole


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize(
    ("version", "case"), [("6", "mor_basic"), ("9", "mor_basic"), ("9", "hive_style"), ("8", "timestamp_keygen_hive")]
)
def test_predicates_are_checked_on_rows_after_the_merge(
    golden: Golden, version: str, case: str, snapshot: bool
) -> None:
    table = golden(version, case).table
    reader, slices = opened(table, snapshot=snapshot)
    whole = rows(reader, slices)
    column = "dt" if "dt" in whole.column_names else "event_time"
    value = sorted(whole[column].to_pylist())[whole.num_rows // 2]
    predicate = Or((compared("ts", "<", 1010), compared(column, "=", value)))
    expected = whole.filter(pc.or_(pc.less(whole["ts"], 1010), pc.equal(whole[column], value)))
    assert 0 < expected.num_rows < whole.num_rows
    filtering, _ = opened(table, snapshot=snapshot, predicate=predicate)
    assert rows(filtering, slices) == expected
    assert rows(filtering, slices, ["name"]) == expected.select(["name"]), (
        "columns of the predicate alone are not returned"
    )


def test_row_filter_of_the_caller_is_one_more(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    reader, slices = opened(table, predicate=compared("qty", ">", 3))
    whole = rows(opened(table)[0], slices)
    odd = RowFilter(frozenset({"ts"}), lambda batch: pc.equal(pc.bit_wise_and(batch["ts"], 1), 1))
    expected = whole.filter(pc.and_(pc.greater(whole["qty"], 3), pc.equal(pc.bit_wise_and(whole["ts"], 1), 1)))
    assert 0 < expected.num_rows < whole.num_rows
    assert rows(reader, slices, ["id"], row_filter=odd) == expected.select(["id"])


def test_commit_times_keep_the_rows_of_these_commits(golden: Golden) -> None:
    table = golden("8", "cow_basic").table
    whole, slices = opened(table)
    every = rows(whole, slices)
    times = frozenset(every["_hoodie_commit_time"].to_pylist()[:1])
    reader, _ = opened(table, commit_times=times)
    found = rows(reader, slices)
    assert found == every.filter(pc.is_in(every["_hoodie_commit_time"], value_set=pa.array(sorted(times))))
    assert 0 < found.num_rows < every.num_rows
    bare, more = opened(golden("9", "no_meta_fields_cow").table, commit_times=times)
    with pytest.raises(UnsupportedError, match=r"no _hoodie_ columns"):
        rows(bare, more)


def test_row_groups_are_chosen_where_there_are_no_logs(golden: Golden) -> None:
    reader, slices = opened(golden("6", "cow_basic").table)
    none, every = RowGroups([]), RowGroups(None)
    assert rows(reader, slices, choice=none).num_rows == 0
    assert none.requested == [1] * len(slices)
    assert rows(reader, slices, choice=every) == rows(reader, slices)
    merging, logged = opened(golden("6", "mor_basic").table)
    with_logs = [item for item in logged if item.log_files]
    assert rows(merging, with_logs, choice=none) == rows(merging, with_logs), "an older row may be hidden there"


def test_corrupt_blocks_are_skipped_and_counted(golden: Golden) -> None:
    reader, slices = opened(golden("6", "log_corrupt_middle").table)
    assert rows(reader, slices).num_rows > 0
    scan = reader.scan(slices[0])
    assert scan.counts.corrupt > 0
    with pytest.raises(CorruptFileError, match=r"\.log\."):
        scan.refuse_corrupt()


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("case", ["mor_basic", "mor_parquet_log", "mor_compacted"])
def test_record_positions_lead_to_the_keys_that_a_merge_by_key_finds(golden: Golden, version: str, case: str) -> None:
    """Positions are ignored; a reader that went by them, as Hudi 1.x may, would replace the rows of the same keys."""
    reader, slices = opened(golden(version, case).table)
    compared_blocks = 0
    for item in slices:
        base = item.base_file
        for block in reader.scan(item).blocks:
            text = block.headers.get(HeaderKey.RECORD_POSITIONS)
            if (
                text is None
                or base is None
                or block.headers[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] != item.base_instant
            ):
                continue
            with reader.storage.open_input(base.path) as file:
                keys = pq.read_table(file, columns=["_hoodie_record_key"]).column(0).to_pylist()
            assert [keys[at] for at in positions_of(base64.b64decode(text))] == block_keys(reader, block)
            compared_blocks += 1
    assert compared_blocks > 0


def block_keys(reader: SliceReader, block: LogBlock) -> list[str]:
    """The keys of a data or delete block in order."""
    if block.type is BlockType.DELETE:
        content = reader.storage.read_range(block.path, ByteRange(block.content_offset, block.content_length))
        return delete_columns(content, path=block.path)["key"].to_pylist()
    schema = pa.schema([("_hoodie_record_key", pa.string())])
    return [key for batch in block_batches(reader.storage, block, schema) for key in batch.column(0).to_pylist()]


def positions_of(data: bytes) -> list[int]:
    """The numbers of a 64-bit Roaring bitmap in its portable form, with array and run containers as small blocks
    have.
    """
    (count,) = struct.unpack_from("<q", data)
    at, found = 8, []
    for _ in range(count):
        high, cookie = struct.unpack_from("<iI", data, at)
        with_runs = cookie & 0xFFFF == 12347
        containers = (cookie >> 16) + 1 if with_runs else struct.unpack_from("<i", data, at + 8)[0]
        flags = int.from_bytes(data[at + 8 : at + 8 + (containers + 7) // 8], "little") if with_runs else 0
        at += 8 + (containers + 7) // 8 if with_runs else 12
        heads = [struct.unpack_from("<HH", data, at + 4 * index) for index in range(containers)]
        at += 4 * containers + (0 if with_runs and containers < 4 else 4 * containers)
        for index, (key, cardinality) in enumerate(heads):
            if flags >> index & 1:
                (runs,) = struct.unpack_from("<H", data, at)
                pairs = [struct.unpack_from("<HH", data, at + 2 + 4 * run) for run in range(runs)]
                lows = [low for start, more in pairs for low in range(start, start + more + 1)]
                at += 2 + 4 * runs
            else:
                lows = list(struct.unpack_from(f"<{cardinality + 1}H", data, at))
                at += 2 * (cardinality + 1)
            found += [high << 32 | key << 16 | low for low in lows]
    return found


def schema_text(fields: list[tuple[int, str, str]], version: int) -> str:
    """An internal schema of flat optional columns."""
    made = [{"id": at, "name": name, "optional": True, "type": kind} for at, name, kind in fields]
    return json.dumps({"max_column_id": 20, "version_id": version, "type": "record", "fields": made})


@pytest.mark.parametrize(
    ("version", "case"),
    [("6", "mor_basic"), ("8", "mor_parquet_log"), ("9", "cow_basic"), ("9", "partial_update_merge_into")],
)
@pytest.mark.parametrize("snapshot", [True, False])
def test_columns_are_found_by_id_after_a_rename_and_a_new_column_of_an_old_name(
    golden: Golden, version: str, case: str, snapshot: bool
) -> None:
    """As after `ALTER TABLE … RENAME COLUMN name TO title`, `DROP COLUMN qty`, `ADD COLUMN qty`: in files written
    before.
    """
    table = golden(version, case).table
    plain, slices = opened(table, snapshot=snapshot)
    before = rows(plain, slices)
    kinds = {"name": "string", "price": "double", "qty": "int", "amount": "double"}
    first, second = [name for name in before.column_names if name in kinds][:2]
    names = [field["name"] for field in plain.spec.schema["fields"]]
    old = [(at, name, kinds.get(name, "string")) for at, name in enumerate(names)]
    new = [
        (at, "title" if name == first else name, kind) if name != second else (99, name, kind) for at, name, kind in old
    ]
    history = SchemaHistory(
        tuple(
            parse_schema_history(f'{{"schemas": [{schema_text(fields, at)}]}}', path="s")[0]
            for fields, at in ((old, 0), (new, 99990101000000000))
        )
    )
    schema = json.loads(re.sub(f'"name": "{first}"', '"name": "title"', json.dumps(plain.spec.schema)))
    reader = replace(plain, spec=replace(plain.spec, schema=schema, history=history.to_json()))
    found = rows(reader, slices)
    assert found["title"].to_pylist() == before[first].to_pylist()
    assert found[second].null_count == found.num_rows
    rest = [name for name in before.column_names if name not in (first, second)]
    assert found.select(rest) == before.select(rest)


def made_table(
    folder: Path, properties: dict[str, str], schema: dict[str, Any], base: list[dict[str, Any]], *logs: bytes
) -> SliceReader:
    """A reader of one file group of our own making: a base file of instant 001, log files of the blocks given."""
    storage = LocalStorage(str(folder))
    (folder / "p").mkdir()
    config = TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.precombine.field": "ts",
            **properties,
        }
    )
    stored = schema if not config.populate_meta_fields else add_meta_fields(schema)
    pq.write_table(pa.Table.from_pylist(base, schema=arrow_schema(stored)), folder / "p" / "f-0_0-1-2_001.parquet")
    for number, block in enumerate(logs, 1):
        (folder / "p" / f".f-0_001.log.{number}_0-1-2").write_bytes(block)
    committed = CommittedInstants(frozenset({"001", "002", "003"}), frozenset(), "001")
    return SliceReader(storage, ReaderSpec(config, schema, committed, "009", merge_logs=True))


def made_slice(reader: SliceReader) -> FileSlice:
    """The slice of made_table."""
    files = [DataFile("p", info.name, info.size) for info in reader.storage.list_files("p")]
    logs = tuple(sorted((file for file in files if ".log." in file.name), key=lambda file: file.name))
    return FileSlice(FileGroupId("p", "f-0"), "001", next(file for file in files if ".log." not in file.name), logs)


def block_of(instant: str, schema: dict[str, Any], rows: list[dict[str, Any]]) -> bytes:
    """An Avro block of rows."""
    codec = DatumCodec(schema)
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(schema)}
    return encode_block(BlockType.AVRO_DATA, headers, encode_avro_block([codec.encode(row) for row in rows]))


PAIR = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in (("a", "string"), ("b", "long"), ("ts", "long"), ("v", "string"))
    ],
}


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_keys_of_several_columns_without_meta_columns(tmp_path: Path, version: str) -> None:
    """`hoodie.populate.meta.fields=false` and two key columns: the key is `a:…,b:…`, as the key generator builds it for
    delete blocks.
    """
    properties = {
        "hoodie.table.version": version,
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.recordkey.fields": "a,b",
    }
    properties |= (
        {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
        if version == "6"
        else {}
    )
    properties |= {"hoodie.table.ordering.fields": "ts"} if version == "9" else {}
    base = [{"a": a, "b": b, "ts": 1, "v": "base"} for a, b in (("x", 1), ("x", 2), (None, 1), ("", 1), ("y", 1))]
    update = block_of(
        "002",
        PAIR,
        [
            {"a": "x", "b": 2, "ts": 2, "v": "new"},
            {"a": None, "b": 1, "ts": 2, "v": "new"},
            {"a": "z", "b": 1, "ts": 2, "v": "in"},
        ],
    )
    gone = deletes("003", [("a:x,b:1", None), ("a:__empty__,b:1", None)])
    reader = made_table(tmp_path, properties, PAIR, base, update, gone)
    found = rows(reader, [made_slice(reader)])
    assert found.column_names == ["a", "b", "ts", "v"]
    assert sorted(map(repr, found.to_pylist())) == sorted(
        map(
            repr,
            [
                {"a": "x", "b": 2, "ts": 2, "v": "new"},
                {"a": None, "b": 1, "ts": 2, "v": "new"},
                {"a": "y", "b": 1, "ts": 1, "v": "base"},
                {"a": "z", "b": 1, "ts": 2, "v": "in"},
            ],
        )
    )


NESTED = {
    "type": "record",
    "name": "t",
    "fields": [
        {
            "name": "s",
            "type": {
                "type": "record",
                "name": "s",
                "fields": [{"name": name, "type": ["null", "string"], "default": None} for name in ("id", "op")],
            },
        },
        *({"name": name, "type": ["null", kind], "default": None} for name, kind in (("ts", "long"), ("v", "string"))),
    ],
}


def nested(key: str, operation: str, ts: int, value: str) -> dict[str, Any]:
    return {"s": {"id": key, "op": operation}, "ts": ts, "v": value}


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("columns", [None, ["v"]])
def test_a_key_and_a_delete_mark_in_a_nested_column(tmp_path: Path, version: str, columns: list[str] | None) -> None:
    """In version 6 the mark is looked for among the top-level columns alone, as DefaultHoodieRecordPayload does."""
    prefix = "hoodie.record.merge.property." if version == "9" else ""
    properties = {
        "hoodie.table.version": version,
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.recordkey.fields": "s.id",
        f"{prefix}hoodie.payload.delete.field": "s.op",
        f"{prefix}hoodie.payload.delete.marker": "D",
        **({"hoodie.table.ordering.fields": "ts"} if version == "9" else {}),
    }
    if version == "6":
        properties["hoodie.compaction.payload.class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    base = [nested(f"k{number}", "I", 1, f"base{number}") for number in range(4)]
    changes = block_of("002", NESTED, [nested("k1", "U", 2, "new"), nested("k2", "D", 2, "gone")])
    reader = made_table(tmp_path, properties, NESTED, base, changes)
    found = rows(reader, [made_slice(reader)], columns)
    left = ["gone"] if version == "6" else []
    assert sorted(found.column("v").to_pylist()) == ["base0", "base3", *left, "new"]


def test_change_operations_delete_and_are_a_column_where_the_table_has_it(tmp_path: Path) -> None:
    with_operation = add_meta_fields(PAIR, operation=True)

    def row(key: str, operation: str | None, value: str) -> dict[str, Any]:
        return {"_hoodie_record_key": key, "_hoodie_operation": operation, "a": key, "ts": 2, "v": value}

    base = [{**row(key, None, "base"), "ts": 1} for key in "abc"]
    for item in base:
        item.pop("_hoodie_operation")
    log = block_of("002", with_operation, [row("a", "U", "new"), row("b", "D", "gone"), row("d", "I", "in")])
    properties = {
        "hoodie.table.version": "6",
        "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    }
    reader = made_table(tmp_path, properties, PAIR, base, log)
    found = rows(reader, [made_slice(reader)])
    assert "_hoodie_operation" not in found.column_names
    assert {item["a"]: item["v"] for item in found.to_pylist()} == {"a": "new", "c": "base", "d": "in"}
    own = {
        **PAIR,
        "fields": [{"name": "_hoodie_operation", "type": ["null", "string"], "default": None}, *PAIR["fields"]],
    }
    shown = rows(replace(reader, spec=replace(reader.spec, schema=own)), [made_slice(reader)])
    assert shown.column_names[5] == "_hoodie_operation"
    assert dict(zip(shown["a"].to_pylist(), shown["_hoodie_operation"].to_pylist(), strict=True)) == {
        "a": "U",
        "c": None,
        "d": "I",
    }


def test_the_budget_is_an_option(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[int] = []
    merge = reader_module.merging
    monkeypatch.setattr(
        reader_module,
        "merging",
        lambda *given, budget, **more: budgets.append(budget) or merge(*given, budget=budget, **more),
    )
    table = golden("6", "mor_log_only").table
    for options in ({}, {"airflow_hudi.memory.bytes": "2000000"}):
        reader, slices = opened(table, options=options)
        rows(reader, slices[:1])
    assert budgets == [reader_module.QUERY_MEMORY_BYTES, 2_000_000]


def test_statistics_of_a_float_that_has_become_a_double_rule_nothing_out_wrongly(tmp_path: Path) -> None:
    """The rows are 1.1 and 2.2, as Hudi reads them by their text; the floats in the footer are 1.10000002… and
    2.2000000476…
    """
    schema = {
        "type": "record",
        "name": "t",
        "fields": [{"name": name, "type": ["null", kind]} for name, kind in (("id", "string"), ("v", "double"))],
    }
    properties = {"hoodie.table.version": "6", "hoodie.populate.meta.fields": "false"}
    reader = made_table(tmp_path, properties, schema, [])
    old = pa.table({"id": ["a", "b"], "v": pa.array([1.1, 2.2], pa.float32())})
    file_slice = made_slice(reader)
    assert file_slice.base_file is not None
    pq.write_table(old, tmp_path / file_slice.base_file.path, row_group_size=1)
    every = reader.output_schema()
    for value, key in ((1.1, "a"), (2.2, "b")):
        bound = bind(compared("v", "=", value), every)
        choice = row_choice(bound, reader.spec)
        keep = RowFilter(frozenset({"v"}), lambda batch, bound=bound: row_mask(bound, batch))
        assert rows(reader, [file_slice], ["id"], row_filter=keep, choice=choice)["id"].to_pylist() == [key]
        assert choice is not None
        # Not every writer orders NaN, so the greatest value is unknown here, and nothing lies above the first row
        # group.
        assert choice.row_groups(pq.read_metadata(tmp_path / file_slice.base_file.path)) == (
            [0] if key == "a" else None
        )
    bounds = to_arrow([Bound("float", float(np.float32(1.1))), None], pa.float64())
    assert bounds.to_pylist() == [1.1, None]
