from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import CorruptFileError
from hudi_core.services.metadata.maintain import update_metadata
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from hudi_health.doctor import listings
from tests.support.damaged_tables import UTC, DamagedTable, changed
from tests.support.golden_archives import archive_these
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.stale_indexes import StaleTable
from tests.support.tiers import tiered
from tests.unit.hudi_health.doctor.test_examine import findings

Stale = Callable[[str], StaleTable]
ZONE = {"spark.sql.session.timeZone": "UTC"}
REBUILD = {"airflow_hudi.metadata.rebuild_row_indexes": "true"}


def named(table: StaleTable, *, files: bool = True) -> dict[str, str]:
    rules = (item for item in findings(table.path, files=files) if "index" in item.rule or "stats" in item.rule)
    return {item.rule: item.severity for item in rules if item.rule != "index_not_named"}


@pytest.mark.parametrize("name", ["narrow_v8", "overtaken_v8"])
def test_narrow_ranges(stale: Stale, name: str) -> None:
    table = stale(name)
    assert named(table, files=False) == {}
    (found,) = [item for item in findings(table.path) if item.rule == "partition_stats_narrow"]
    assert (found.severity, "metadata update" in found.fix) == ("error", True)
    assert "2 partition(s) (2024-01-01, 2024-01-02)" in found.what
    table.update()
    assert named(table) == {}


def test_narrow_ranges_of_partitions_in_an_expression_index(golden: Callable[[str, str], GoldenCase]) -> None:
    """As Hudi 1.0 leaves them behind a pending compaction. Our queries exclude files by the ranges of files alone."""
    path = golden("8", "mdt_all_mor").table
    damaged = DamagedTable(path)
    name = "expr_index_idx_day"
    whole = {key: datum for key, datum in damaged.raw(name).items() if datum["ColumnStatsMetadata"]["isTightBound"]}
    (wrapper, _) = next(iter(whole.values()))["ColumnStatsMetadata"]["minValue"]
    other = (wrapper, {"value": "1970-01-01"})
    narrow = {
        key: changed(datum, "ColumnStatsMetadata", minValue=other, maxValue=other) for key, datum in whole.items()
    }
    damaged.write({name: list(narrow.items())})
    where = "from_unixtime(ts, 'yyyy-MM-dd') = '+55840-11-08'"
    rows = HudiTable.open(str(path), options=UTC).read(where=where)
    assert sum(batch.num_rows for batch in rows.batches) > 0
    assert [item for item in findings(path) if item.rule == "partition_stats_narrow"] == [], "of no known zone"
    (found,) = [item for item in findings(path, ZONE) if item.rule == "partition_stats_narrow"]
    assert found.what.startswith(f"{name} lacks values of {len(whole)} partition(s)")
    assert not [item for item in findings(path, ZONE, files=False) if item.rule == "partition_stats_narrow"]
    updated = update_metadata(context_of(path, ZONE), LocalEngine(2), Owner.current("test"), 1)
    assert len(updated.widened) == len(whole)
    assert not [item for item in findings(path, ZONE) if item.rule == "partition_stats_narrow"]
    assert {key: damaged.raw(name)[key]["ColumnStatsMetadata"]["maxValue"] for key in whole} == {
        key: datum["ColumnStatsMetadata"]["maxValue"] for key, datum in whole.items()
    }


@pytest.mark.parametrize("name", ["bulk_v8", "bulk_v9"])
def test_an_incomplete_secondary_index(stale: Stale, name: str) -> None:
    table = stale(name)
    assert named(table) == {"secondary_index_incomplete": "error"}
    table.archive()
    assert named(table) == {"secondary_index_unproven": "info"}
    table.update(REBUILD)
    assert named(table) == {}


@pytest.mark.parametrize("name", ["again_v6", "again_v9"])
def test_a_record_index_that_may_lack_keys(stale: Stale, name: str) -> None:
    table = stale(name)
    assert named(table) == {"record_index_doubtful": "info"}
    archive_these(table.path, table.table.data.load().completed().instants[:1])
    assert named(table) == {"record_index_doubtful": "info"}


def test_a_sound_table(stale: Stale) -> None:
    assert named(stale("behind_v9")) == {}


def test_what_cannot_be_compared_is_said(stale: Stale, monkeypatch: pytest.MonkeyPatch) -> None:
    table = stale("behind_v9").path
    monkeypatch.setattr(listings, "_narrow", lambda files: {"partition_stats": tuple("abcdefg")})
    (narrow,) = [item for item in findings(table) if item.rule == "partition_stats_narrow"]
    assert "7 partition(s) (a, b, c, d, e …)" in narrow.what

    def refuse(metadata: object) -> None:
        raise CorruptFileError("a file is damaged")

    monkeypatch.setattr(listings, "doubts_of", refuse)
    (found,) = [item for item in findings(table) if "index" in item.rule or "stats" in item.rule]
    assert (found.rule, found.severity) == ("index_unreadable", "warning")
    assert "a file is damaged" in found.what


@pytest.mark.parametrize("folder", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("damage", [lambda data: data[:-100], lambda data: data[:-8192] + bytes(8192)])
def test_a_cut_base_file_of_an_index_is_found_and_the_fix_mends_it(
    golden: Callable[[str, str], GoldenCase], folder: str, damage: Callable[[bytes], bytes]
) -> None:
    """Cut, or with zeros at its end as a file system leaves a page that it did not write."""
    table = golden(folder, "mdt_all_mor_compacted").table
    assert [item for item in findings(table) if item.rule == "index_damaged"] == []
    victim = max((table / ".hoodie/metadata/record_index").glob("*.hfile"), key=lambda path: path.name.split("_")[-1])
    victim.write_bytes(damage(victim.read_bytes()))
    (found,) = [item for item in findings(table) if item.severity == "error"]
    assert (found.rule, found.path) == ("index_damaged", str(victim.relative_to(table)))
    assert found.what.startswith("record_index has a damaged file: ")
    for command in ("drop", "create"):
        arguments = ["metadata", command, str(table), "--partition", "record_index"]
        assert " ".join(arguments) in found.fix
        assert hudictl(*arguments).code == 0
    assert [item for item in findings(table) if item.severity == "error"] == []
    assert hudictl("metadata", "validate", table).code == 0


@pytest.mark.parametrize("folder", tiered(["6", "8", "9"], ["6"]))
def test_indexes_without_files_are_named_and_cost_no_row(
    golden: Callable[[str, str], GoldenCase], folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    """0.15.0 leaves one that it has to begin when it restores the table: listed, and its folder is empty."""
    table = golden(folder, "mdt_all_mor").table
    whole = rows_of(HudiTable.open(str(table)), None)
    wheres = {
        f"{name} = {value!r}": [row for row in whole if row[name] == value]
        for name, value in whole[0].items()
        if isinstance(value, str | int)
    }
    wheres |= {f"{name} IS NOT NULL": [row for row in whole if row[name] is not None] for name in whole[0]}
    indexes = sorted(TableConfig.load(LocalStorage(table)).metadata_partitions - {"files"})
    for name in indexes:
        for path in (table / ".hoodie/metadata" / name).iterdir():
            path.unlink()
    assert {where: rows_of(HudiTable.open(str(table)), where) for where in wheres} == wheres
    assert "is listed and has no files" in caplog.text
    found = [item for item in findings(table) if item.rule == "index_empty"]
    assert [(item.path, item.severity) for item in found] == [
        (f".hoodie/metadata/{name}", "warning") for name in indexes
    ]


def rows_of(table: HudiTable, where: str | None) -> list[dict[str, object]]:
    batches = table.read(where=where).batches
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: str(row))
