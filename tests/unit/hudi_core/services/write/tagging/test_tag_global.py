"""Writes by an index of the whole table: a key is in one partition, whichever a row of it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.model.names import IS_DELETED, PARTITION_PATH
from hudi_core.services.write.tagging import exchange
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import changed, like, marked, own_columns, write

Golden = Callable[[str, str], GoldenCase]
TABLES = [
    (version, case) for version in ("6", "8", "9") for case in ("cow_basic", "mor_basic", "mdt_all_cow", "mdt_all_mor")
]
TYPES = {"GLOBAL_SIMPLE": True, "RECORD_INDEX": False}
"""Index types, with whether rows move by default."""
BY_RECORD = "hoodie.record.index.update.partition.path"
EVERY = [(*table, index) for table in TABLES for index in (*TYPES, "RECORD_INDEX that moves")]
CORE = [
    ("6", "mdt_all_mor", "GLOBAL_SIMPLE"),
    ("8", "cow_basic", "RECORD_INDEX"),
    ("9", "mdt_all_mor", "RECORD_INDEX that moves"),
]


@dataclass
class Whole:
    """The rows of a table by their keys, each with its partition."""

    moves: bool
    event_time: bool
    rows: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    @staticmethod
    def of(table: Path, *, moves: bool, event_time: bool) -> Whole:
        rows = read_rows(table)
        places = rows.column(PARTITION_PATH).to_pylist()
        own = own_columns(rows).to_pylist()
        return Whole(moves, event_time, {row["id"]: (place, row) for place, row in zip(places, own, strict=True)})

    def upsert(self, given: pa.Table) -> None:
        newest: dict[str, dict[str, Any]] = {}
        for row in given.to_pylist():
            if row["id"] not in newest or newest[row["id"]]["ts"] <= row["ts"]:
                newest[row["id"]] = row
        for key, row in newest.items():
            place, old = self.rows.get(key, (row["dt"], None))
            if old is not None and self.event_time and old["ts"] > row["ts"]:
                continue
            if row.get(IS_DELETED):
                self.rows.pop(key, None)
            else:
                self.rows[key] = (row["dt"] if self.moves else place, row)

    def check(self, table: Path) -> None:
        assert_metadata_true(table)
        found = Whole.of(table, moves=False, event_time=False).rows
        assert read_rows(table).num_rows == len(found)
        assert shown(found) == shown(self.rows)


def shown(rows: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """By key, without nulls and marks: not every row has all columns. Readers may take `dt` from paths."""
    kept = {
        key: {name: value for name, value in row.items() if value is not None and name not in (IS_DELETED, "dt")}
        for key, (_, row) in rows.items()
    }
    return {key: (place, repr(sorted(kept[key].items()))) for key, (place, _) in rows.items()}


def other_day(day: str) -> str:
    return {"2024-01-01": "2024-01-02", "2024-01-02": "2031-01-01"}.get(day, "2024-01-01")


@pytest.fixture(params=tiered(["few keys", "many keys"], ["few keys"]))
def look(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the keys of the source are so few that only these are looked for."""
    if request.param == "many keys":
        monkeypatch.setattr(exchange, "_MOST_WANTED", 0)


@pytest.mark.usefixtures("look")
@pytest.mark.parametrize(("version", "case", "index"), tiered(EVERY, CORE))
def test_a_key_is_once_in_the_table(golden: Golden, tmp_path: Path, version: str, case: str, index: str) -> None:
    """Rows stay in their partition, name another or a new one, come too late, are deleted there, and come back."""
    table = golden(version, case).table
    kind = index.partition(" ")[0]
    options = {"hoodie.index.type": kind, BY_RECORD: str(index != kind).lower()}
    model = Whole.of(table, moves=TYPES[kind] or index != kind, event_time=version != "6")
    rows = own_columns(read_rows(table)).sort_by("id")
    rows = rows if IS_DELETED in rows.column_names else marked(rows, [False] * rows.num_rows)
    moved = changed(rows.slice(0, 6), dt=other_day, ts=lambda ts: ts + 999_999, name="moved")
    stays = changed(rows.slice(6, 3), ts=lambda ts: ts + 999_999, name="stays")
    # In version 6 log files compare rows that come too late with each other, base files do not.
    late = changed(rows.slice(9, 3 if model.event_time else 0), dt=other_day, ts=lambda ts: ts - 999_999, name="late")
    gone = changed(rows.slice(12, 3), dt=other_day, ts=lambda ts: ts + 999_999, **{IS_DELETED: True})
    new = like(rows, *({"id": f"new {at}", "dt": day} for at, day in enumerate(("2024-01-01", "2031-01-01"))))
    twice = pa.concat_tables([changed(new, dt=other_day, ts=new["ts"][0].as_py() + by, name="twice") for by in (5, 3)])
    for number, given in enumerate(
        (pa.concat_tables([moved, stays, late, gone, new, twice]), changed(moved, dt=other_day, ts=lambda ts: ts + 9))
    ):
        model.upsert(given)
        write(table, "upsert", put_source(given, tmp_path, files=2, name=str(number)), options)
        model.check(table)
    keys = changed(pa.concat_tables([moved, new]), dt=other_day)
    for key in keys.column("id").to_pylist():
        model.rows.pop(key)
    assert write(table, "delete", put_source(keys, tmp_path, name="gone"), options).deleted == 8
    model.check(table)
    back = changed(moved, dt=other_day, ts=lambda ts: ts + 99, name="back")
    model.upsert(back)
    write(table, "upsert", put_source(back, tmp_path, name="back"), options)
    model.check(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_rows_that_move_are_refused_where_rows_are_merged_by_fields(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    table = golden(version, "payload_partial_update").table
    rows = own_columns(read_rows(table))
    moved = put_source(changed(rows.slice(0, 1), dt=other_day), tmp_path)
    before, pending = read_rows(table), open_context(table).active.load().pending()
    with pytest.raises(UnsupportedError, match="1 rows move to another partition"):
        write(table, "upsert", moved, {"hoodie.index.type": "GLOBAL_BLOOM"})
    assert read_rows(table).equals(before)
    assert open_context(table).active.load().pending() == pending
    fixed = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
    assert write(table, "upsert", moved, fixed).updated == 1
