"""Record positions in the log files of a write: which rows of base files its blocks name, and when they name none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.codec.log.blocks import BlockType
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import UnsupportedError
from hudi_core.model.names import IS_DELETED
from hudi_core.services.write import append
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.support.appended_logs import appended, blocks_of_commit, named_rows, slices
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import Model, changed, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
DAY = "2024-01-01"
BY_KEY = {"hoodie.merge.use.record.positions": "false"}


def compact(table: Path) -> None:
    """Makes base files of small row groups. Those without an update are copied."""
    options = {"hoodie.compact.inline.max.delta.commits": "1", "airflow_hudi.parquet.row_group.rows": "5"}
    request = RunRequest(str(table), service="compaction", schedule=True, options=options, owner="the tests")
    assert HudiTable.open(str(table)).run(request, LocalEngine(1)).exit_code == 0


def check(table: Path, model: Model) -> None:
    """Readers merge by positions and by keys to the same rows."""
    model.check(table)
    read = HudiTable.open(str(table), options=BY_KEY).read()
    assert_same_rows(pa.Table.from_batches(list(read.batches), read.schema), read_rows(table))
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_blocks_name_the_rows_of_the_base_file(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Of one with many row groups, some copied; in several blocks, each in the order of the rows; write after write."""
    table = golden(version, "mor_basic").table
    compact(table)
    rows = own_columns(read_rows(table))
    write(table, "upsert", put_source(changed(rows.slice(30, 2), ts=lambda ts: ts + 9), tmp_path, name="few"))
    compact(table)
    model = Model.of(table, event_time=True)
    monkeypatch.setattr(append, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr("hudi_core.config.rows_config.WriteConfig.piece_bytes", 1_000)
    given = changed(rows, ts=lambda ts: ts + 99_999)
    given = pa.concat_tables([given.slice(0, 90), changed(given.slice(90), **{IS_DELETED: True})])
    model.upsert(given)
    result = write(table, "upsert", put_source(given, tmp_path))
    counts = named_rows(table, result.instant)
    assert sum(counts) == given.num_rows
    assert len(counts) > len(appended(table, result.instant)) + 3
    assert min(counts) > 0
    check(table, model)
    again = changed(rows.slice(20, 90), ts=lambda ts: ts + 999_999, qty=1)
    model.upsert(again)
    result = write(table, "upsert", put_source(again, tmp_path, name="again"))
    assert sum(named_rows(table, result.instant)) == again.num_rows
    model.delete(again.slice(0, 40))
    result = write(table, "delete", put_source(again.slice(0, 40), tmp_path, name="gone"))
    assert sum(named_rows(table, result.instant)) == 40
    check(table, model)
    compact(table)
    check(table, model)


@pytest.mark.parametrize("few", [True, False])
def test_rows_of_chosen_row_groups_keep_their_numbers(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    """Few keys are looked for in the row groups that may have them; many in all."""
    table = golden("9", "payload_default").table
    compact(table)
    if not few:
        monkeypatch.setattr("hudi_core.services.source.files.FEW_KEYS", 0)
    model, rows = Model.of(table, event_time=True), own_columns(within(read_rows(table), DAY))
    given = changed(rows.sort_by("id").slice(rows.num_rows - 2), ts=lambda ts: ts + 99_999)
    model.upsert(given)
    result = write(table, "upsert", put_source(given, tmp_path))
    assert named_rows(table, result.instant) == [2]
    check(table, model)


RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX"}
MOVES = {"hoodie.index.type": "GLOBAL_SIMPLE"}
STAYS = {**MOVES, "hoodie.simple.index.update.partition.path": "false"}


@pytest.mark.parametrize(
    ("version", "name", "options", "are_named"),
    [
        ("9", "payload_default", {"hoodie.index.type": "BLOOM"}, True),
        ("9", "payload_default", STAYS, True),
        ("9", "payload_default", MOVES, False),
        ("9", "payload_default", RECORD_INDEX, False),
        ("9", "payload_default", {"hoodie.write.record.positions": "false"}, False),
        ("9", "bucket_index_mor", BUCKETS, False),
        ("6", "payload_default", {}, False),
    ],
)
def test_who_names_rows(
    golden: Golden, tmp_path: Path, version: str, name: str, options: dict[str, str], are_named: bool
) -> None:
    """Indexes that find the row of a key, as in Hudi. Readers merge by keys what names no rows."""
    table = golden(version, name).table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table)).slice(0, 12)
    given = changed(rows, ts=lambda ts: ts + 99_999, qty=3)
    model.upsert(given)
    result = write(table, "upsert", put_source(given, tmp_path), options)
    assert (sum(named_rows(table, result.instant)) == given.num_rows) == are_named
    assert any(block.record_positions for _, block in blocks_of_commit(table, result.instant)) == are_named
    check(table, model)


def test_a_block_with_a_key_that_only_logs_have_names_no_rows(golden: Golden, tmp_path: Path) -> None:
    """It was deleted, and put back while the compaction that left it out was pending."""
    table = golden("9", "mor_compaction_requested").table
    (compaction,) = open_context(table).active.load().pending_compactions()
    request = RunRequest(str(table), service="compaction", instant=compaction.requested_time, owner="the tests")
    assert HudiTable.open(str(table)).run(request, LocalEngine(1)).exit_code == 0
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    rows = changed(rows.filter(pc.equal(rows["dt"], DAY)), ts=lambda ts: ts + 99_999)
    is_back = pc.equal(rows["id"], "k00028")
    for given, due in ((rows, [0]), (rows.filter(pc.invert(is_back)), [rows.num_rows - 1])):
        model.upsert(given)
        result = write(table, "upsert", put_source(given, tmp_path, name=str(due)))
        assert named_rows(table, result.instant) == due
        check(table, model)


def test_each_row_of_a_key_is_named(reported: Callable[[str], Path], tmp_path: Path) -> None:
    """As in Hudi, which finds a row of the key at a time. By keys only the first one changes, also in Hudi."""
    table = reported("duplicate_keys_v9")
    rows = own_columns(read_rows(table))
    given = like(rows.filter(pc.equal(rows["id"], "b")), {"v": "new", "ts": 1 << 40})
    result = write(table, "upsert", put_source(given, tmp_path))
    assert (result.updated, named_rows(table, result.instant)) == (2, [2])
    read = own_columns(read_rows(table))
    assert read.filter(pc.equal(read["id"], "b"))["v"].to_pylist() == ["new", "new"]
    result = write(table, "delete", put_source(given, tmp_path, name="gone"))
    assert (result.deleted, named_rows(table, result.instant)) == (2, [2])
    assert "b" not in read_rows(table)["id"].to_pylist()


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_rows_may_be_parquet_blocks(golden: Golden, tmp_path: Path, version: str) -> None:
    """Other writers may append Avro blocks to the same slice. Blocks in HFile format are refused."""
    table = golden(version, "payload_default").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    for number, form in enumerate(("parquet", "avro", "PARQUET")):
        given = changed(rows.slice(0, 20), ts=lambda ts, by=number: ts + 99_999 + by, qty=number)
        model.upsert(given)
        options = {"hoodie.logfile.data.block.format": form}
        result = write(table, "upsert", put_source(given, tmp_path, name=str(number)), options)
        due = BlockType.AVRO_DATA if form == "avro" else BlockType.PARQUET_DATA
        assert {block.type for _, block in blocks_of_commit(table, result.instant)} == {due}
        assert sum(named_rows(table, result.instant)) == (0 if version == "6" else 20)
    check(table, model)
    options = {"hoodie.logfile.data.block.format": "hfile"}
    before = slices(table)
    with pytest.raises(UnsupportedError, match=r"UPSERT with hoodie\.logfile\.data\.block\.format=hfile"):
        write(table, "upsert", put_source(rows.slice(0, 2), tmp_path, name="refused"), options)
    assert slices(table) == before
    compact(table)
    check(table, model)
