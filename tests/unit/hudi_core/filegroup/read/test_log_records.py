from __future__ import annotations

import io
import json
import tempfile
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock, encode_block
from hudi_core.codec.log.content import OrderingValue, encode_avro_block
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.merge.winning_version import Kind
from hudi_core.filegroup.read import log_records
from hudi_core.filegroup.read.log_records import block_batches, has_operations, merge_logs
from hudi_core.filegroup.read.log_scan import CommittedInstants, scan_log_files
from tests.support.log_files import FULL, SCHEMA, data, deletes, put
from tests.support.memory_storage import MemoryStorage

COMMITTED = CommittedInstants(frozenset({"002", "003"}), frozenset(), "002")
POLICY = MergePolicy(("_hoodie_record_key",), ("ts",))
ORDERING = Ordering.of(POLICY, SCHEMA, path="p")
ROWS = [(f"k{index:03d}", index, "t" * (index % 40)) for index in range(500)]


def merged(*files: list[bytes], budget: int = 1 << 20) -> dict[str, tuple[Kind, Any]]:
    """Kind and text of each key's winner."""
    storage = MemoryStorage()
    scan = scan_log_files(
        storage, [put(storage, at, *blocks) for at, blocks in enumerate(files, 1)], COMMITTED, latest_instant="009"
    )
    records = merge_logs(storage, scan, arrow_schema(FULL), POLICY, ORDERING, budget=budget)
    with closing(records.store):
        kinds = [Kind(kind) for kind in records.kinds]
        live = [index for index, kind in enumerate(kinds) if kind is Kind.RECORD]
        texts = dict(zip(live, records.take(pa.array(live, pa.int64()).to_numpy())["text"].to_pylist(), strict=True))
        return {key: (kinds[index], texts.get(index)) for index, key in enumerate(records.keys.to_pylist())}


@pytest.mark.parametrize("budget", [1, 10_000, 1 << 20])
def test_records_and_typed_and_natural_deletes(budget: int) -> None:
    long_9, int_0 = OrderingValue("long", 9), OrderingValue("int", 0)
    found = merged(
        [data("002", [("a", 5, "a1"), ("b", 10, "b1"), ("c", 10, "c1"), ("d", 1, "d1")])],
        [
            deletes("003", [("a", long_9), ("b", long_9), ("c", int_0), ("e", None)]),
            data("003", [("d", 0, "d2"), ("a", 1, "a2")]),
        ],
        budget=budget,
    )
    assert found == {
        "a": (Kind.RECORD, "a2"),
        "b": (Kind.RECORD, "b1"),
        "c": (Kind.NATURAL_DELETE, None),
        "d": (Kind.RECORD, "d1"),
        "e": (Kind.NATURAL_DELETE, None),
    }


def the_block(storage: MemoryStorage, content: bytes) -> LogBlock:
    """The one block of a log file."""
    (block,) = scan_log_files(storage, [put(storage, 1, content)], COMMITTED, latest_instant="009").blocks
    return block


@pytest.mark.parametrize("piece", [64, 200, 1000, 20_000])
def test_large_blocks_are_decoded_in_pieces(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    storage = MemoryStorage()
    block = the_block(storage, data("002", ROWS))
    whole = pa.Table.from_batches(block_batches(storage, block, arrow_schema(FULL)))
    monkeypatch.setattr(log_records, "PIECE_BYTES", piece)
    batches = list(block_batches(storage, block, arrow_schema(FULL)))
    assert pa.Table.from_batches(batches) == whole
    assert whole["id"].to_pylist() == [key for key, _, _ in ROWS]
    assert len(batches) > (1 if piece * 2 < block.content_length else 0)


def test_a_record_larger_than_a_piece_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    block = the_block(storage, data("002", [("a", 1, "x" * 100_000), ("b", 2, "y")]))
    monkeypatch.setattr(log_records, "PIECE_BYTES", 100)
    sizes: list[int] = []
    read_range = storage.read_range
    monkeypatch.setattr(storage, "read_range", lambda path, span: sizes.append(span.length) or read_range(path, span))
    batches = list(block_batches(storage, block, arrow_schema(FULL)))
    assert [text for batch in batches for text in batch["text"].to_pylist()] == ["x" * 100_000, "y"]
    assert len(sizes) < 8


@pytest.mark.parametrize("damage", ["length", "count", "version"])
def test_a_broken_large_block_is_an_error_that_names_the_file(monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    storage = MemoryStorage()
    block = the_block(storage, data("002", ROWS))
    content = bytearray(storage.read(block.path))
    at = {"version": 0, "count": 4, "length": 8}[damage]
    content[block.content_offset + at : block.content_offset + at + 4] = (1 << 30).to_bytes(4, "big")
    damaged = the_block(storage, bytes(content))
    monkeypatch.setattr(log_records, "PIECE_BYTES", 1000)
    with pytest.raises((CorruptFileError, UnsupportedError), match=r"\.log\.1"):
        list(block_batches(storage, damaged, arrow_schema(FULL)))


def test_spill_files_are_gone_after_an_error(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    storage = MemoryStorage()
    good, bad = put(storage, 1, data("002", ROWS)), put(storage, 2, data("003", ROWS))
    broken = bytearray(storage.read(bad.path))
    broken[-60:-40] = b"\xff" * 20
    storage.write(bad.path, bytes(broken))
    scan = scan_log_files(storage, [good, bad], COMMITTED, latest_instant="009")
    with pytest.raises(CorruptFileError):
        merge_logs(storage, scan, arrow_schema(FULL), POLICY, ORDERING, budget=1)
    assert list(tmp_path.iterdir()) == []


def operation_block(instant: str, rows: list[tuple[str, str]]) -> bytes:
    """An Avro block of rows (key, operation) with the column of change operations."""
    schema = add_meta_fields(SCHEMA, operation=True)
    codec = DatumCodec(schema)
    made = [
        codec.encode({"_hoodie_record_key": key, "_hoodie_operation": operation, "id": key, "ts": 1, "text": operation})
        for key, operation in rows
    ]
    return encode_block(
        BlockType.AVRO_DATA,
        {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(schema)},
        encode_avro_block(made),
    )


def test_change_operations_are_seen_by_the_merge_or_refused() -> None:
    storage = MemoryStorage()
    files = [
        put(storage, 1, data("002", [("a", 1, "a1")])),
        put(storage, 2, operation_block("003", [("a", "U"), ("b", "D"), ("c", "I")])),
    ]
    blocks = scan_log_files(storage, files, COMMITTED, latest_instant="009").blocks
    assert has_operations(blocks)
    assert not has_operations(blocks[:1])
    with pytest.raises(UnsupportedError, match=r"_hoodie_operation"):
        list(block_batches(storage, blocks[1], arrow_schema(FULL)))
    whole = arrow_schema(add_meta_fields(SCHEMA, operation=True))
    assert [
        value for batch in block_batches(storage, blocks[0], whole) for value in batch["_hoodie_operation"].to_pylist()
    ] == [None]
    assert [
        value for batch in block_batches(storage, blocks[1], whole) for value in batch["_hoodie_operation"].to_pylist()
    ] == ["U", "D", "I"]


def test_blocks_of_every_type_hold_the_same_rows() -> None:
    """Avro, Parquet and HFile blocks of the same rows. Hudi 0.15 keeps the key in the HFile's cells only, 1.0.2 in the
    records, and numbers the cells.
    """
    storage = MemoryStorage()
    rows = [(f"k{index}", index, f"t{index}") for index in range(50)]
    avro = data("002", rows)
    (block,) = scan_log_files(storage, [put(storage, 1, avro)], COMMITTED, latest_instant="009").blocks
    table = pa.Table.from_batches(block_batches(storage, block, arrow_schema(FULL)))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    codec = DatumCodec(FULL)
    cells = [
        (row["_hoodie_record_key"].encode(), codec.encode({**row, "_hoodie_record_key": ""}))
        for row in table.to_pylist()
    ]
    hfile = write_hfile(sorted(cells), schema=json.dumps(FULL))
    numbered = [(f"{index:5d}".encode(), codec.encode(row)) for index, row in enumerate(table.to_pylist())]
    headers = {HeaderKey.INSTANT_TIME: "002", HeaderKey.SCHEMA: json.dumps(FULL)}
    other_hfile = write_hfile(numbered, schema=json.dumps(FULL))
    contents = [
        (BlockType.PARQUET_DATA, sink.getvalue()),
        (BlockType.HFILE_DATA, hfile),
        (BlockType.HFILE_DATA, other_hfile),
    ]
    for at, (kind, content) in enumerate(contents, 2):
        (other,) = scan_log_files(
            storage, [put(storage, at, encode_block(kind, headers, content))], COMMITTED, latest_instant="009"
        ).blocks
        assert pa.Table.from_batches(block_batches(storage, other, arrow_schema(FULL))).sort_by("ts") == table


def test_partial_blocks_merge_by_their_own_columns() -> None:
    storage = MemoryStorage()
    schema = {**FULL, "fields": [entry for entry in FULL["fields"] if entry["name"] != "text"]}
    codec = DatumCodec(schema)
    content = encode_avro_block([codec.encode({"_hoodie_record_key": "a", "id": "a", "ts": 9})])
    headers = {HeaderKey.INSTANT_TIME: "003", HeaderKey.SCHEMA: json.dumps(schema), HeaderKey.IS_PARTIAL: "true"}
    partial = encode_block(BlockType.AVRO_DATA, headers, content, hudi_1_headers=True)
    scan = scan_log_files(
        storage, [put(storage, 1, data("002", [("a", 1, "kept")]), partial)], COMMITTED, latest_instant="009"
    )
    policy = MergePolicy(("_hoodie_record_key",), ("ts",), Rules.EVENT_TIME)
    records = merge_logs(
        storage, scan, arrow_schema(FULL), policy, Ordering.of(policy, SCHEMA, path="p"), budget=1 << 20
    )
    with closing(records.store):
        assert records.take(np.array([0]))["ts"].to_pylist() == [9]
        assert records.take(np.array([0]))["text"].to_pylist() == ["kept"]


@pytest.mark.parametrize("is_partial", [False, True])
def test_a_column_that_came_later_has_its_default_unless_a_partial_update_leaves_it_out(is_partial: bool) -> None:
    late = {"name": "late", "type": ["string", "null"], "default": "none yet"}
    schema = arrow_schema({**FULL, "fields": [late, *FULL["fields"]]})
    storage = MemoryStorage()
    codec = DatumCodec(FULL)
    content = encode_avro_block([codec.encode({"_hoodie_record_key": "a", "id": "a", "ts": 9})])
    headers = {HeaderKey.INSTANT_TIME: "003", HeaderKey.SCHEMA: json.dumps(FULL)}
    if is_partial:
        headers[HeaderKey.IS_PARTIAL] = "true"
    block = the_block(storage, encode_block(BlockType.AVRO_DATA, headers, content, hudi_1_headers=True))
    (batch,) = block_batches(storage, block, schema)
    assert batch.schema.equals(schema)
    assert batch.column("late").to_pylist() == [None if is_partial else "none yet"]
    assert batch.column("ts").to_pylist() == [9]
