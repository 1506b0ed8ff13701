from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, StorageExistsError
from hudi_core.metadata_table.indexed_table import PATH_KEY
from hudi_core.metadata_table.write.lifetime import drop_partitions
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.services.runner import ServiceRunner
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.verbs.run import RunRequest
from tests.support.golden_cleans import context_of
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.indexing.test_build_resize import RECORD_INDEX, Golden, counts, groups, plan
from tests.unit.hudi_core.services.indexing.test_job import OWNER, differences, run

SECONDARY = {"hoodie.metadata.index.secondary.column": "name"}


def undefined(table: Path) -> Path:
    """The table with a record index, and as if no index had been defined yet."""
    properties = table / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if not line.startswith((PATH_KEY, "hoodie.table.checksum"))))
    shutil.rmtree(table / ".hoodie" / ".index_defs", ignore_errors=True)
    return table


def test_only_row_level_indexes_have_a_configurable_number_of_file_groups(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    with pytest.raises(ConfigError, match="row-level indexes"):
        plan(table, {"hoodie.metadata.index.bloom.filter.enable": "true", **groups(2)})
    with pytest.raises(ConfigError, match="between 1 and 10000"):
        plan(table, RECORD_INDEX | groups(0))
    assert run(table, plan(table, RECORD_INDEX | groups(5)).instant, groups(5)) == "completed"
    assert counts(table) == {"record-index": 5}, "so many from the start"


@pytest.mark.parametrize("version", ["6", "9"])
def test_where_nothing_is_named_or_kept_the_reason_says_what_would_change_it(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    named = plan(table, {"hoodie.metadata.index.column.stats.enable": "false"})
    assert (named.instant, named.plan) == (None, None)
    assert "hoodie.metadata.index.column.stats.enable" in str(named.reason)
    drop_partitions(LocalStorage(table), context_of(table).config, ["files"])
    kept = plan(table, RECORD_INDEX)
    assert (kept.instant, kept.plan) == (None, None)
    assert "`hudictl metadata create TABLE`" in str(kept.reason)
    assert "hoodie.metadata.enable=true" in str(kept.reason)
    for wrong in ({"hoodie.index.name": "unknown"}, {"hoodie.metadata.record.index.enable": "perhaps"}, groups(2)):
        with pytest.raises(ConfigError):
            plan(table, wrong)


def test_a_global_index_does_not_become_partitioned_by_a_resize(golden: Golden) -> None:
    table = golden("9", "mdt_record_index_lookup").table
    with pytest.raises(ConfigError, match="not partitioned"):
        plan(table, {"hoodie.metadata.record.level.index.enable": "true", **groups(2)})
    assert counts(table) == {"record-index": 10}


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_the_instant_is_before_the_latest_write_and_nobodys(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    before = HudiTable.open(str(table)).timeline()
    *earlier, last = sorted(before.commits().requested_times)
    instant = plan(table, RECORD_INDEX).instant
    assert earlier[-1] < instant < last
    assert not before.contains(instant)
    assert instant not in Table(table).metadata_timeline.load().requested_times
    assert run(table, instant) == "completed"
    now = HudiTable.open(str(table)).timeline()
    latest = now.last_completed()
    assert latest is not None
    assert latest.requested_time == last, "of which a writer takes the name of the next index"
    assert differences(table) == []


def test_a_second_plan_has_another_instant(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    instants = [
        plan(table, {name: "true"}).instant for name in (*RECORD_INDEX, "hoodie.metadata.index.bloom.filter.enable")
    ]
    assert len(set(instants)) == 2
    assert [run(table, instant) for instant in instants] == ["completed", "completed"]
    assert differences(table) == []


def test_a_run_sees_the_definition_that_its_plan_has_put(golden: Golden) -> None:
    table = undefined(golden("8", "mor_basic").table)
    context = context_of(table, SECONDARY)
    request = RunRequest(str(table), "indexing", schedule=True, options=SECONDARY)
    (result,) = ServiceRunner(context, LocalEngine(1), OWNER).run(request).instants
    assert result.state == "completed"
    assert "secondary_index_name" in Table(table).config.metadata_partitions
    assert not [item for item in differences(table) if "secondary_index" in item]


def test_nothing_is_defined_where_the_plan_could_not_be_put(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("8", "mor_basic").table
    definitions = table / ".hoodie" / ".index_defs" / "index.json"
    before = definitions.read_bytes() if definitions.exists() else None

    def refused(*_: object) -> None:
        raise StorageExistsError("somebody else's")

    with monkeypatch.context() as patch:
        patch.setattr(ActiveTimeline, "create_requested", refused)
        with pytest.raises(StorageExistsError):
            IndexingService().schedule(context_of(table, SECONDARY), OWNER, dry_run=False)
    assert "secondary_index_name" not in (definitions.read_text() if definitions.exists() else "")
    assert before is None or definitions.exists()
    assert not HudiTable.open(str(table)).timeline().pending().of_actions(Action.INDEXING).instants
    assert run(table, plan(table, SECONDARY).instant, SECONDARY) == "completed"
