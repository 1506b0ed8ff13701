"""Row groups that no log record touches are copied, and only those; the new file is the same as without copies."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet import splice
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import footer_bytes
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.thrift import I32, LIST, ThriftList, encode_struct, read_struct
from hudi_core.config.rows_config import WriteConfig
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.merge.log_merge import LogRecords
from hudi_core.filegroup.merge.payload_store import PayloadStore
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.merge.winning_version import Kind
from hudi_core.model.names import FILE_NAME, RECORD_KEY
from hudi_core.services.compaction.merge_slice import CompactedSlice, compact_operation
from hudi_core.services.rewriting.row_group_copies import CopyPlan, copy_source, keys_remain
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_merge_slice import ATTEMPT, json_of, units_of

Golden = Callable[[str, str], GoldenCase]
VARYING = {"totalLogReadTimeMs", "totalWriteBytes", "fileSizeInBytes", "runtimeStats"}


def records(keys: list[str], kinds: list[Kind] | None = None) -> LogRecords:
    """What the logs hold of some keys."""
    found = np.array(kinds or [Kind.RECORD] * len(keys), dtype=np.uint8)
    rows = np.arange(len(keys))
    store = PayloadStore(pa.schema([]), budget=1)
    return LogRecords(pa.array(keys, pa.string()), found, rows, pa.nulls(len(keys)), store, None, len(keys), 0)


def source_of(keys: Sequence[str | None], rows: int, *, statistics: bool, codec: str = "gzip") -> RowGroupSource:
    """A base file of these keys, with so many rows in a row group."""
    table = pa.table({RECORD_KEY: keys, FILE_NAME: ["f"] * len(keys)})
    file = io.BytesIO()
    pq.write_table(
        table, file, row_group_size=rows, compression=codec, compression_level=1, write_statistics=statistics
    )
    return RowGroupSource(ParquetBaseFile(file, "base.parquet"))


def config(rows: int) -> WriteConfig:
    return WriteConfig.of({"airflow_hudi.parquet.row_group.rows": str(rows), "hoodie.parquet.block.size": "65536"})


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("with_keys", [True, False])
@pytest.mark.parametrize("ordered", tiered([True, False], [True]))
def test_copied_is_what_the_logs_hold_no_key_of(statistics: bool, with_keys: bool, ordered: bool) -> None:
    copied = merged = 0
    for seed in range(20):
        random = Random(seed)
        keys = [f"k{number:05}{'é' * (number % 3)}" for number in range(random.randrange(1, 3000))]
        if not ordered:
            random.shuffle(keys)
        touched = {random.choice(keys) for _ in range(random.choice([0, 1, 3]))} | {"a", "k00500x", "z"}
        size = random.choice([40, 500])
        source = source_of(keys, size, statistics=statistics)
        plan = CopyPlan(source, records(sorted(touched)).keys, config(4 * size), "GZIP", with_keys=with_keys)
        seen: list[int] = []
        for part in plan.parts():
            for number in part.numbers:
                group = keys[number * size : (number + 1) * size]
                assert part.copied == (len(group) == size and not touched & set(group)), (seed, number)
            if part.copied:
                assert len(part.numbers) == 1
                assert [key for some in part.keys for key in some.to_pylist()] == (group if with_keys else [])
            copied += part.copied
            merged += not part.copied
            seen += part.numbers
        assert seen == list(range(-(-len(keys) // size)))
    assert min(copied, merged) > 20


def test_a_file_whose_footer_is_too_large_a_tree_is_decoded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More values than half of its bytes. It is not damaged: Arrow reads it, and passes over fields that it does not
    know.
    """
    table = pa.table({RECORD_KEY: ["a", "b"]})
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False)
    pages, footer = file.getvalue()[: -8 - len(footer_bytes(file.getvalue()))], footer_bytes(file.getvalue())
    policy = MergePolicy((RECORD_KEY,), ())
    caplog.set_level(logging.INFO)
    most = 1 << 12
    monkeypatch.setattr(splice, "MAX_VALUES", most)
    for value in (1000, 0):
        unknown = {number: (LIST, ThriftList(I32, [value] * (most // 2))) for number in (100, 101)}
        padded = encode_struct({**read_struct(footer)[0], **unknown})
        made = pages + padded + len(padded).to_bytes(4, "little") + b"PAR1"
        base = ParquetBaseFile(io.BytesIO(made), "base.parquet")
        assert (copy_source(base, table.schema, policy, config(2)) is None) == (value == 0)
        assert pa.Table.from_batches(base.batches()).equals(table)
    assert "every row group is decoded: its footer is not held in memory" in caplog.text


def test_parts_that_follow_each_other_are_merged_together() -> None:
    source = source_of([f"k{number}" for number in range(10, 60)], 10, statistics=True)
    plan = CopyPlan(source, records(["k11", "k29", "k45"]).keys, config(10), "GZIP", with_keys=False)
    assert [(part.numbers, part.copied) for part in plan.parts()] == [
        ([0, 1], False),
        ([2], True),
        ([3], False),
        ([4], True),
    ]


@pytest.mark.parametrize("with_keys", [True, False])
def test_pages_around_touched_rows_are_merged(with_keys: bool) -> None:
    """A row group of 400 rows in pages of 10. Runs of less than 30 rows between touched pages are merged with them."""
    copied = merged = 0
    for seed in range(40):
        random = Random(seed)
        keys = [f"k{number:05}" for number in range(400)]
        file = io.BytesIO()
        table = pa.table({RECORD_KEY: keys, FILE_NAME: ["f"] * 400})
        pages = {"write_page_index": seed % 2 == 0, "max_rows_per_page": 10, "write_batch_size": 10}
        pq.write_table(table, file, compression="gzip", use_dictionary=[FILE_NAME], store_schema=False, **pages)
        source = RowGroupSource(ParquetBaseFile(file, "base.parquet"))
        touched = sorted(random.sample(range(400), random.choice([1, 3, 9])))
        rows = {row // 10 * 10 + at for row in touched for at in range(10)}
        plan = CopyPlan(source, records([keys[at] for at in touched]).keys, config(120), "GZIP", with_keys=with_keys)
        end = 0
        for part in plan.parts():
            if part.piece is None:
                assert not part.copied
                end = 400
                continue
            assert part.piece.first == end
            end = part.piece.end
            span = range(part.piece.first, end)
            if part.copied:
                assert len(span) >= 30
                assert not rows & set(span)
                assert [key for some in part.keys for key in some.to_pylist()] == (
                    keys[span.start : end] if with_keys else []
                )
            else:
                assert {span.start, end - 1} & rows or len(span) < 30
            copied += part.copied
            merged += not part.copied
        assert end == 400
    assert min(copied, merged) > 60


@pytest.mark.parametrize("with_keys", [True, False])
def test_with_positions_these_decide(with_keys: bool) -> None:
    """Not the keys: the first and the last row group hold one that the logs have for a row of another."""
    keys = [f"k{number}" for number in range(50)]
    source = source_of(["k15", *keys[1:49], "k15"], 10, statistics=True)
    plan = CopyPlan(
        source,
        records(["k15", "k15", "k30"]).keys,
        config(10),
        "GZIP",
        with_keys=with_keys,
        positions=np.array([19, 20, 30]),
    )
    parts = list(plan.parts())
    assert [(part.numbers, part.copied) for part in parts] == [([0], True), ([1, 2, 3], False), ([4], True)]
    found = [key for part in parts for some in part.keys for key in some.to_pylist()]
    assert found == (["k15", *keys[1:10], *keys[40:49], "k15"] if with_keys else [])


def test_a_row_group_of_another_codec_is_merged() -> None:
    source = source_of(["a", "b"], 1, statistics=True, codec="zstd")
    for codec, copied in (("GZIP", [False]), ("ZSTD", [True, True])):
        plan = CopyPlan(source, records([]).keys, config(1), codec, with_keys=False)
        assert [part.copied for part in plan.parts()] == copied


def test_no_key_column_is_read_where_the_footer_says_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of([f"k{number}" for number in range(100, 200)], 10, statistics=True)
    read: list[list[int]] = []
    batches = source.file.batches
    monkeypatch.setattr(
        source.file, "batches", lambda names, rows, groups: read.append(groups) or batches(names, rows, groups)
    )
    parts = list(CopyPlan(source, records(["k155", "k1555"]).keys, config(10), "GZIP", with_keys=False).parts())
    assert read == [[5]]
    assert sum(part.copied for part in parts) == 9


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("with_keys", [True, False])
def test_a_row_group_with_a_row_without_a_key_is_not_copied(statistics: bool, with_keys: bool) -> None:
    """A merge or a sort refuses the row, too. The keys of a copy may be joined from the footer, unread."""
    source = source_of(["a", None, "b"], 3, statistics=statistics)
    with pytest.raises(CorruptFileError, match="1 records have no record key") as caught:
        list(CopyPlan(source, records([]).keys, config(3), "GZIP", with_keys=with_keys).parts())
    assert caught.value.path == "base.parquet"


@pytest.mark.parametrize("with_keys", [True, False])
def test_where_rows_have_no_keys_none_is_looked_at(with_keys: bool) -> None:
    source = source_of([None, "", None, "", "a", None], 2, statistics=True)
    parts = list(CopyPlan(source, None, config(2), "GZIP", with_keys=with_keys).parts())
    assert [(part.numbers, part.copied, part.keys) for part in parts] == [([at], True, []) for at in range(3)]


def test_keys_remain_unless_something_deletes() -> None:
    assert keys_remain(records(["a", "b"]))
    for kind in set(Kind) - {Kind.RECORD}:
        assert not keys_remain(records(["a", "b"], [Kind.RECORD, kind]))


def regroup(path: Path, *, cut: bool) -> None:
    """Writes a base file again, with a row in each row group, or (`cut`) in each page of one row group."""
    with ParquetBaseFile(io.BytesIO(path.read_bytes()), str(path)) as base:
        footer, table = base.footer, pa.Table.from_batches(base.batches())
    pages = {"write_page_index": True, "max_rows_per_page": 1, "write_batch_size": 1}
    with pq.ParquetWriter(
        path, table.schema, compression="gzip", use_dictionary=not cut, store_schema=False, **pages
    ) as writer:
        writer.write_table(table, row_group_size=table.num_rows if cut else 1)
        writer.add_key_value_metadata({key: value for key, value in footer.items() if key != "ARROW:schema"})


def compacted(
    case: GoldenCase, options: dict[str, str], *, cut: bool
) -> list[tuple[CompactedSlice, pa.Table, dict[bytes, bytes]]]:
    """Of each operation of the plan: the result, rows and footer of the new file."""
    found = []
    for unit in units_of(case.table, options):
        if unit.operation.base_file is not None:
            regroup(case.table / unit.operation.partition / unit.operation.base_file, cut=cut)
        result = compact_operation(unit, ATTEMPT)
        assert result.stat is not None
        file = pq.ParquetFile(case.table / result.stat.path, page_checksum_verification=True)
        assert set(file.read([FILE_NAME])[0].to_pylist()) == {Path(result.stat.path).name}
        found.append((result, file.read(), file.metadata.metadata))
    return found


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize(
    ("folder", "name"),
    tiered(
        [
            *[(folder, "mor_compaction_requested") for folder in ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")],
            *[(folder, "bucket_index_mor") for folder in ("6", "9")],
            *[(folder, "partial_update_merge_into") for folder in ("8", "9")],
        ],
        [("9", "mor_compaction_requested"), ("6", "bucket_index_mor"), ("8", "partial_update_merge_into")],
    ),
)
def test_the_new_file_is_that_without_copies(golden: Golden, folder: str, name: str, cut: bool) -> None:
    """Rows, their order, bloom filter, key range, counts: only the row groups differ."""
    small = {"airflow_hudi.parquet.row_group.rows": "2", "hoodie.index.bloom.num_entries": "60000"}
    copied = compacted(golden(folder, name), small, cut=cut)
    whole = {**small, "airflow_hudi.compaction.copy_row_groups": "false"}
    decoded = compacted(golden(folder, name), whole, cut=cut)
    assert len(copied) == len(decoded) > 0
    for (one, rows, footer), (other, same, same_footer) in zip(copied, decoded, strict=True):
        assert rows.equals(same)
        assert footer == same_footer
        assert replace(one, stat=None, copied=0) == replace(other, stat=None)
        assert {key: value for key, value in json_of(one).items() if key not in VARYING} == {
            key: value for key, value in json_of(other).items() if key not in VARYING
        }
        assert other.copied == 0
    assert sum(one.copied for one, _, _ in copied) > 0
    assert sum(one.records.updated + one.records.deleted for one, _, _ in copied) > 0
