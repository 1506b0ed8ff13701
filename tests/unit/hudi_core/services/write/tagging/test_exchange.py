"""In how many shards rows are tagged, and in how many batches keys come to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.services.source import count, files
from hudi_core.services.write.tagging import exchange, keys
from hudi_core.services.write.tagging.tag import Tagged
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.writes import (
    Model,
    SeenEngine,
    base_files,
    changed,
    own_columns,
    random_rows,
    write,
)

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.usefixtures("look")
@pytest.mark.parametrize("case", ["cow_basic", "bucket_index_mor"])
def test_many_shards_write_what_one_would(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Its keys may be many pieces, and so may its rows."""
    table = golden("9", case).table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    given = random_rows(rows, 5, 60, partitions=["2024-01-01", "2031-01-01"])
    model.upsert(given)
    monkeypatch.setattr(exchange, "KEYS_PER_SHARD", 8)
    monkeypatch.setattr(keys, "_KEYS_AT_ONCE", 1)
    engine = SeenEngine()
    options = {"airflow_hudi.batch.rows": "3", **(BUCKETS if case.startswith("bucket") else {})}
    write(table, "upsert", put_source(given, tmp_path, files=3), options, engine=engine)
    model.check(table)
    tagged: list[Tagged] = engine.results[0]
    assert len(tagged) > 5
    assert_metadata_true(table)


@pytest.mark.usefixtures("look")
def test_keys_of_one_shard_come_in_many_batches(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the table before the rows."""
    table = golden("9", "mdt_disabled").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    given = changed(rows.slice(20, 60), qty=3)
    model.upsert(given)
    monkeypatch.setattr(keys, "_KEYS_AT_ONCE", 1)
    monkeypatch.setattr(exchange, "KEYS_PER_SHARD", 1 << 30)
    engine = SeenEngine()
    write(table, "upsert", put_source(given, tmp_path), engine=engine)
    model.check(table)
    (tagged,) = engine.results[0]
    assert (sum(tagged.in_groups.values()), dict(tagged.new)) == (60, {})


def test_shards_do_not_get_more_keys_where_rows_of_the_source_are_large(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would not fit into the memory of a task."""
    table = golden("9", "mdt_disabled").table
    given = put_source(own_columns(read_rows(table)).slice(0, 2), tmp_path)
    size = sum(path.stat().st_size for path in base_files(table, "2024-01-01"))
    monkeypatch.setattr(files, "FEW_KEYS", 0)
    monkeypatch.setattr(exchange, "KEYS_PER_SHARD", 100)
    monkeypatch.setattr(count, "bytes_per_row", lambda *_: 20.0)
    engine = SeenEngine()
    write(table, "upsert", given, engine=engine)
    assert len(engine.results[0]) > size / 20 / 100


def test_a_shard_with_keys_of_the_table_alone_stages_no_rows(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mdt_disabled").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    given = changed(rows.slice(3, 1), qty=3)
    model.upsert(given)
    monkeypatch.setattr(files, "FEW_KEYS", 0)
    monkeypatch.setattr(exchange, "KEYS_PER_SHARD", 4)
    engine = SeenEngine()
    write(table, "upsert", put_source(given, tmp_path), engine=engine)
    model.check(table)
    tagged: list[Tagged] = engine.results[0]
    assert len(tagged) > 2
    assert [item for item in tagged if not item.name] == [Tagged("")] * (len(tagged) - 1)
