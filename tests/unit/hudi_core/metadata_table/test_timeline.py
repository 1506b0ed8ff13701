"""The metadata timeline for writers: completions, the form of commits, and the slices of all partitions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest

from hudi_core.errors import MetadataUnavailableError, StorageNotFoundError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.commit import CommitMetadata, Operation, decode_commit
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.actions.content import decode_datum
from hudi_core.timeline.instant import Action
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.metadata_services import metadata_timeline_of

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_instant_completes_after_everything_on_the_timeline(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    metadata_timeline, instant = metadata_timeline_of(table), table.new_instant()
    latest = max(item.completed_at for item in table.metadata_timeline.load())
    metadata_timeline.active.create_requested(instant, Action.CLEAN)
    metadata_timeline.active.to_inflight(instant, Action.CLEAN)
    metadata_timeline.complete(instant, Action.CLEAN, b"done")
    found = table.metadata_timeline.load().get(instant, Action.CLEAN)
    assert found.is_completed
    if version == "6":
        assert metadata_timeline.completion_time(instant) is None
        assert found.completion_time is None
    else:
        assert found.completion_time is not None
        assert found.completion_time > max(latest, instant)


@pytest.mark.parametrize("version", VERSIONS)
def test_commits_have_the_form_of_the_tables_version(golden: Golden, version: str) -> None:
    metadata_timeline = metadata_timeline_of(Table(golden(version, "mor_basic").table))
    metadata = CommitMetadata({}, True, Operation.COMPACT, {"schema": "s"})
    content = metadata_timeline.commit_content(metadata)
    assert decode_commit(content, path="commit").extra_metadata == {"schema": "s"}
    if version == "6":
        assert json.loads(content)["compacted"] is True
    else:
        assert decode_datum(content, path="commit")["version"] is None, "as Hudi writes it"


def test_a_metadata_table_without_properties_is_unavailable(golden: Golden) -> None:
    table = Table(golden("9", "mor_basic").table)
    metadata_timeline = metadata_timeline_of(table)
    (table.path / ROOT / ".hoodie/hoodie.properties").unlink()
    with pytest.raises(MetadataUnavailableError, match="cannot be read") as error:
        metadata_timeline.active.load()
    assert "hudictl metadata create TABLE" in (error.value.remedy or "")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_slices_of_all_partitions_that_have_file_groups(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_cow").table)
    metadata_timeline = metadata_timeline_of(table)
    timeline = metadata_timeline.active.load()
    (table.path / ROOT / "secondary_index_unfinished").mkdir()
    found = metadata_timeline.all_slices(timeline)
    assert {item.partition for item in found} == table.config.metadata_partitions
    assert found[0].partition == "files"
    for name in table.config.metadata_partitions:
        assert [item for item in found if item.partition == name] == metadata_timeline.latest_slices(timeline, name)
    shutil.rmtree(table.path / ROOT / "files")
    with pytest.raises(StorageNotFoundError):
        metadata_timeline.all_slices(timeline)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_compaction_takes_the_next_logs_in_layout_1(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    metadata_timeline, instant = metadata_timeline_of(table), table.new_instant()
    (place,) = metadata_timeline.latest_slices(table.metadata_timeline.load(), "files")
    logs = tuple(info.name for info in place.logs)
    plan = CompactionPlan((CompactionOperation("files", place.file_id, place.base_instant, None, logs),))
    metadata_timeline.active.create_requested(instant, Action.COMPACTION, encode_compaction_plan(plan))
    timeline = metadata_timeline.active.load()
    in_layout_1 = {FileGroupId("files", place.file_id): instant}
    assert metadata_timeline.pending_bases(timeline) == (in_layout_1 if version == "6" else {})
    expected = instant if version == "6" else place.base_instant
    assert [item.base_instant for item in metadata_timeline.all_slices(timeline) if item.partition == "files"] == [
        expected
    ]
