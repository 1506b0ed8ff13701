"""Who makes a table, what is refused, and that a fresh table is read and written to."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.new_table import NewTable
from hudi_core.config.properties import parse_properties
from hudi_core.config.table_config import BACKUP, PROPERTIES, update_properties
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, CorruptFileError, HudiError, UnsupportedError
from hudi_core.services.create.verb import Created, Creation
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_core.verbs.metadata import MetadataCreateRequest
from hudi_core.verbs.write import WriteRequest
from hudi_health.verbs import MetadataValidateRequest
from tests.support.memory_storage import MemoryStorage
from tests.support.table_files import contents
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

VERSIONS = [6, 8, 9]
FIELDS: dict[str, Any] = {
    "table_name": "trips",
    "table_version": 9,
    "record_key": ("id",),
    "partition_by": ("day",),
    "ordering": ("ts",),
}
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trip",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "day", "type": "string"},
            {"name": "ts", "type": "long"},
            {"name": "fare", "type": ["null", "double"], "default": None},
        ],
    }
)
TIMELINE = ".hoodie/timeline/history/.airflow_hudi"


def creation(storage: Storage, options: dict[str, str] | None = None, schema: str = SCHEMA, **given: Any) -> Creation:
    chosen = options or {}
    return Creation(storage, NewTable.of({**FIELDS, **given}, chosen), chosen, {}, schema)


def made(folder: Path, options: dict[str, str] | None = None, **given: Any) -> Created:
    return creation(LocalStorage(folder), options, **given).run()


def some_rows(first: int, end: int, day: str = "2026-01-01", fare: float = 1.0, ts: int = 1) -> pa.Table:
    count = end - first
    return pa.table(
        {
            "id": [f"trip-{number}" for number in range(first, end)],
            "day": [day] * count,
            "ts": pa.array([ts] * count, pa.int64()),
            "fare": [fare] * count,
        }
    )


def write(table: Path, operation: str, rows: pa.Table) -> dict[str, Any]:
    source = table.parent / "rows.parquet"
    pq.write_table(rows, source)
    request = WriteRequest(str(table), operation=operation, source=str(source))
    return dict(HudiTable.open(str(table)).run(request, LocalEngine(1)).document or {})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_is_its_properties_and_the_folder_of_its_timeline(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "trips"
    done = made(folder, table_version=version)
    assert sorted(contents(folder)) == sorted([PROPERTIES] if version == 6 else [PROPERTIES, TIMELINE])
    text = (folder / PROPERTIES).read_text()
    assert [line[0] for line in text.splitlines()[:2]] == ["#", "#"]
    assert text.startswith("#Properties saved on 20")
    assert parse_properties(text.encode(), path=PROPERTIES) == done.config.raw
    opened = HudiTable.open(str(folder))
    assert (opened.config.name, opened.config.version, len(opened.timeline())) == ("trips", version, 0)
    assert opened.schema() == done.schema


def test_the_result_says_what_was_made(tmp_path: Path) -> None:
    document = made(tmp_path / "trips", table_type="mor").to_dict()
    assert {name: document[name] for name in ("created", "name", "type", "version", "columns", "reason")} == {
        "created": True,
        "name": "trips",
        "type": "MERGE_ON_READ",
        "version": 9,
        "columns": ["id", "day", "ts", "fare"],
        "reason": None,
    }
    assert document["table"] == str(tmp_path / "trips")
    assert document["properties"]["hoodie.table.ordering.fields"] == "ts"
    assert "hoodie.table.create.schema" not in document["properties"]
    assert [field["name"] for field in document["schema"]["fields"]] == document["columns"]
    assert json.loads(json.dumps(document)) == document


def test_a_table_that_is_there_is_left_alone(tmp_path: Path) -> None:
    made(tmp_path / "trips")
    before = contents(tmp_path / "trips")
    again = made(tmp_path / "trips")
    assert (again.reason, again.to_dict()["created"]) == ("the table is there", False)
    found = creation(LocalStorage(tmp_path / "trips")).find()
    assert found == again
    assert contents(tmp_path / "trips") == before


def test_a_table_that_was_written_to_is_still_the_same(tmp_path: Path) -> None:
    made(tmp_path / "trips")
    write(tmp_path / "trips", "upsert", some_rows(0, 3))
    table = str(tmp_path / "trips")
    HudiTable.open(table).run(MetadataCreateRequest(table), LocalEngine(1))
    assert made(tmp_path / "trips").reason == "the table is there"


def test_another_table_is_an_error_that_names_the_difference(tmp_path: Path) -> None:
    made(tmp_path / "trips")
    before = contents(tmp_path / "trips")
    others: list[tuple[dict[str, Any], str]] = [
        ({"table_name": "fares"}, "hoodie.table.name is trips there, and fares here"),
        ({"table_type": "mor"}, "hoodie.table.type is COPY_ON_WRITE there, and MERGE_ON_READ here"),
        (
            {"schema": SCHEMA.replace('"fare"', '"price"')},
            "hoodie.table.create.schema is fare double there, and price double here",
        ),
    ]
    for given, message in others:
        for act in (Creation.run, Creation.find):
            with pytest.raises(ConfigError, match=message) as caught:
                act(creation(LocalStorage(tmp_path / "trips"), **given))
            assert caught.value.path == PROPERTIES
    assert contents(tmp_path / "trips") == before


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_of_racing_creates_one_makes_the_table(tmp_path: Path, kind: str, same: bool) -> None:
    memory = MemoryStorage()

    def create(number: int) -> Created | HudiError:
        storage: Any = LocalStorage(tmp_path / "trips") if kind == "local" else memory
        try:
            return creation(storage, table_name="trips" if same else f"trips{number}").run()
        except HudiError as error:
            return error

    for _ in range(10 if kind == "memory" else 1):
        memory = MemoryStorage()
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(create, range(8)))
        winners = [one for one in done if isinstance(one, Created) and one.reason is None]
        assert len(winners) == 1
        for other in done:
            if other is winners[0]:
                continue
            if same:
                assert isinstance(other, Created)
                assert other.reason == "the table is there"
            else:
                assert isinstance(other, ConfigError)
                assert "there is another table" in other.message


class LostRace(MemoryStorage):
    """Another process creates the table right before this one does."""

    def __init__(self, **winner: Any) -> None:
        super().__init__()
        self.winner = winner

    def create_exclusive(self, path: str, data: bytes) -> None:
        first: Any = MemoryStorage()
        creation(first, **self.winner).run()
        super().create_exclusive(path, first.read(path))
        super().create_exclusive(path, data)


def test_the_loser_of_a_race_finds_the_table_of_the_winner() -> None:
    storage: Any = LostRace()
    assert creation(storage).run().reason == "the table is there"
    storage = LostRace(table_type="mor")
    with pytest.raises(ConfigError, match=r"hoodie\.table\.type is MERGE_ON_READ there, and COPY_ON_WRITE here"):
        creation(storage).run()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "trips"
    would = creation(LocalStorage(folder)).run(dry_run=True)
    assert (would.reason, would.to_dict()["created"], folder.exists()) == ("a dry run", False, False)
    made(folder)
    assert creation(LocalStorage(folder)).run(dry_run=True).reason == "the table is there"
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.parquet").touch()
    with pytest.raises(ConfigError, match="holds files"):
        creation(LocalStorage(tmp_path / "rows")).run(dry_run=True)


@pytest.mark.parametrize("file", ["rows.parquet", "2026/01/rows.parquet", ".hoodie/20260101000000000.commit"])
def test_a_folder_with_files_is_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).touch()
    with pytest.raises(ConfigError, match="is no Hudi table and holds files") as caught:
        made(tmp_path)
    assert caught.value.path == file
    assert sorted(contents(tmp_path)) == [file]


def test_empty_folders_and_a_create_that_died_are_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "trips" / "2026" / "01").mkdir(parents=True)
    (tmp_path / "trips" / ".hoodie" / ".temp").mkdir(parents=True)
    LocalStorage(tmp_path / "trips").write(TIMELINE, b"")
    assert made(tmp_path / "trips", table_version=6).reason is None


def test_properties_that_are_being_changed_are_a_table(tmp_path: Path) -> None:
    """A writer of Hudi that dies between the deletion and the new file leaves the backup alone."""
    made(tmp_path)
    (tmp_path / PROPERTIES).rename(tmp_path / BACKUP)
    assert made(tmp_path).reason == "the table is there"
    assert not (tmp_path / PROPERTIES).exists()
    (tmp_path / BACKUP).write_bytes(b"")
    with pytest.raises(CorruptFileError):
        made(tmp_path)


def test_a_storage_without_exclusive_creates_is_refused(tmp_path: Path) -> None:
    storage = open_storage("memory://create/trips")
    assert not storage.supports_exclusive_create
    with pytest.raises(UnsupportedError, match="cannot create a file exclusively"):
        creation(storage).run()
    assert storage.list_tree("") == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"record_key": ("key",)}, "the schema has no column 'key'"),
        ({"partition_by": ("Day",)}, "the schema has no column 'Day'"),
        ({"ordering": ("fares",)}, "the schema has no column 'fares'"),
        ({"record_key": ("fare",)}, "key or partition field 'fare' of type double"),
        ({"partition_by": ("fare",)}, "key or partition field 'fare' of type double"),
        ({"partition_by": ("ts",), "key_generator": "TIMESTAMP"}, "timestamp.type"),
    ],
)
def test_columns_of_keys_partitions_and_order_are_checked(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(HudiError, match=message):
        made(tmp_path / "trips", **given)
    assert not (tmp_path / "trips").exists()


@pytest.mark.parametrize("options", [{"airflow_hudi.no.such": "1"}, {"hoodie.parquet.small.file.limit": "many"}])
def test_options_are_checked(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        made(tmp_path / "trips", options)


def test_a_misspelt_option_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made(tmp_path / "trips", {"hoodie.clean.commit.retained": "3"})
    assert "hoodie.clean.commit.retained does not exist" in caplog.text


@pytest.mark.parametrize("encoding", [None, "true", "false"])
def test_a_complex_key_of_one_column_may_be_made_in_either_way(tmp_path: Path, encoding: str | None) -> None:
    """Releases of Hudi differ, and the table's first rows show it."""
    options = {} if encoding is None else {"hoodie.write.complex.keygen.new.encoding": encoding}
    assert made(tmp_path, options, key_generator="COMPLEX", table_version=6).reason is None


FRESH = [*product(VERSIONS, ["cow", "mor"], ["upsert", "insert", "bulk_insert"], [False, True])]


@pytest.mark.parametrize(
    ("version", "kind", "operation", "with_metadata"),
    tiered(FRESH, [(6, "mor", "upsert", False), (8, "cow", "insert", True), (9, "mor", "bulk_insert", True)]),
)
def test_rows_are_written_to_a_fresh_table(
    tmp_path: Path, version: int, kind: str, operation: str, with_metadata: bool
) -> None:
    folder = tmp_path / "trips"
    made(folder, table_version=version, table_type=kind)
    assert HudiTable.open(str(folder)).files() == []
    if with_metadata:
        HudiTable.open(str(folder)).run(MetadataCreateRequest(str(folder)), LocalEngine(1))
    first = write(folder, operation, some_rows(0, 10))
    assert (first["inserted"], first["updated"], first["reason"]) == (10, 0, None)
    second = write(folder, "upsert", some_rows(5, 12, fare=2.0, ts=2))
    assert (second["inserted"], second["updated"]) == (2, 5)
    rows = read_rows(folder)
    assert sorted(zip(rows["id"].to_pylist(), rows["fare"].to_pylist(), strict=True)) == sorted(
        (f"trip-{number}", 2.0 if number >= 5 else 1.0) for number in range(12)
    )
    if with_metadata:
        found = HudiTable.open(str(folder)).run(MetadataValidateRequest(str(folder)), LocalEngine(1)).document
        assert found is not None
        assert found["differences"] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_table_has_no_rows(tmp_path: Path, version: int) -> None:
    made(tmp_path, table_version=version)
    found = HudiTable.open(str(tmp_path)).read()
    assert [*found.batches] == []
    assert {*found.schema.names[-4:]} == {"id", "day", "ts", "fare"}


def test_the_properties_of_a_new_table_are_changed_as_those_of_others(tmp_path: Path) -> None:
    made(tmp_path)
    config = update_properties(LocalStorage(tmp_path), {"hoodie.table.metadata.partitions": "files"})
    assert config.metadata_partitions == {"files"}
