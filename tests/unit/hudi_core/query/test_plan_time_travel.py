"""Time travel: which times are answered and which are refused. The rows are compared in tests/golden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.codec.avro.container import read_container, write_container
from hudi_core.errors import ConfigError, CorruptFileError
from hudi_core.history.lsm import LsmHistory
from hudi_core.model.names import parse_base_file
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import open_context
from tests.support.golden_archives import archive_these
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def count(table: HudiTable, **requested: Any) -> int:
    return sum(batch.num_rows for batch in table.read(**requested).batches)


def date_text(instant: str) -> str:
    return (
        f"{instant[:4]}-{instant[4:6]}-{instant[6:8]} "
        f"{instant[8:10]}:{instant[10:12]}:{instant[12:14]}.{instant[14:17]}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_an_instant_and_its_date_are_one_time(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "mor_basic").table))
    counts = []
    for commit in table.timeline().commits():
        counts.append(count(table, as_of=commit.requested_time))
        assert count(table, as_of=date_text(commit.requested_time)) == counts[-1]
        assert count(table, as_of=str(int(commit.requested_time) + 1)) == counts[-1]
    assert counts[-1] == count(table)
    assert len(set(counts)) > 1


@pytest.mark.parametrize("version", VERSIONS)
def test_before_the_first_commit_there_are_no_rows(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "mor_basic").table))
    before = table.plan(as_of="2020-01-01")
    assert before.splits == ()
    assert before.schema == table.plan().schema


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["cleaned_commits_cow", "cleaned_commits_mor"])
def test_what_the_cleaner_passed_is_refused(golden: Golden, version: str, case: str) -> None:
    table = HudiTable.open(str(golden(version, case).table))
    first = table.timeline().commits().first()
    assert first is not None
    with pytest.raises(ConfigError, match="may have removed what the table held") as caught:
        table.read(as_of=first.requested_time)
    kept = caught.value.message.split(" keeps ")[1].split(" ")[0]
    assert kept > first.requested_time
    assert count(table, as_of=kept) > 0
    assert "a longer retention" in str(caught.value.remedy)
    assert "savepoint" not in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("version", "name"),
    [("6", "{0}.savepoint"), ("8", "timeline/{0}_{0}.savepoint"), ("9", "timeline/{0}_{0}.savepoint")],
)
def test_a_savepoint_that_a_clean_passed_is_restored_and_not_read(golden: Golden, version: str, name: str) -> None:
    path = golden(version, "cleaned_commits_cow").table
    first = HudiTable.open(str(path)).timeline().commits().instants[0].requested_time
    (path / ".hoodie" / name.format(first)).write_bytes(b"{}")
    with pytest.raises(ConfigError, match="may have removed") as caught:
        HudiTable.open(str(path)).read(as_of=first)
    assert f"hudictl restore TABLE --instant {first}" in str(caught.value.remedy)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_cleaned_by_versions_is_read_back_to_its_timeline_s_start(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "cleaned_versions_cow").table))
    first = table.timeline().commits().first()
    assert first is not None
    with pytest.raises(ConfigError, match="older than its timeline"):
        table.read(as_of=str(int(first.requested_time) - 1))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_time_that_may_still_change_is_refused(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "failed_inflight_cow").table))
    pending = table.timeline().pending().last()
    assert pending is not None
    with pytest.raises(ConfigError, match=f"{pending.requested_time} is not complete"):
        table.read(as_of=pending.requested_time)
    assert count(table, as_of=str(int(pending.requested_time) - 1)) == count(table)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["clustering_requested_cow", "mor_compaction_requested"])
def test_pending_services_do_not_stand_in_the_way(golden: Golden, version: str, case: str) -> None:
    table = HudiTable.open(str(golden(version, case).table))
    assert len(table.timeline().pending()) == 1
    assert count(table, as_of="2099-01-01") == count(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_is_that_of_the_time(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "schema_evolution_cow").table))
    commits = list(table.timeline().commits())
    names = [table.plan(as_of=commit.requested_time).schema.names for commit in commits]
    assert len(names[0]) < len(names[-1])
    assert names[-1] == table.plan().schema.names


@pytest.mark.parametrize("text", ["yesterday", "2024", "2024-13-01", "99999999999999999"])
def test_what_is_no_time(golden: Golden, text: str) -> None:
    with pytest.raises(ConfigError):
        HudiTable.open(str(golden("6", "mor_basic").table)).read(as_of=text)


CLEAN = ("--schedule", "--engine", "local", "--option")
BY_VERSIONS = (*CLEAN, "hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS", "--option")


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize(
    ("case", "retained"),
    tiered(
        [
            ("cow_basic", 2),
            ("mor_compacted", 1),
            ("clustered_cow", 1),
            ("insert_overwrite_partition_cow", 1),
            ("cleaned_versions_mor", 1),
        ],
        [("cow_basic", 2), ("mor_compacted", 1), ("clustered_cow", 1), ("cleaned_versions_mor", 1)],
    ),
)
def test_a_clean_by_versions_leaves_a_time_whole_or_refused(
    golden: Golden, version: str, case: str, retained: int
) -> None:
    """Every time on the timeline, before and after a clean by file versions, and after one by commits besides."""
    path = golden(version, case).table
    table = HudiTable.open(str(path))
    times = [commit.requested_time for commit in table.timeline().commits()]
    before = {time: answer(table, time) for time in times}
    cleaned = hudictl("run", "clean", path, *BY_VERSIONS, f"hoodie.clean.fileversions.retained={retained}")
    assert cleaned.code == 0, cleaned.err
    after = {time: answer(table, time) for time in times}
    assert all(after[time] in (None, before[time]) for time in times), after
    assert after[times[-1]] is not None
    again = hudictl("run", "clean", path, *CLEAN, "hoodie.clean.commits.retained=50")
    assert again.code == 0, again.err
    assert {time: answer(table, time) for time in times} == after


def answer(table: HudiTable, time: str) -> list[str] | None:
    """The keys of the rows as of a time; None where that is refused."""
    try:
        rows = table.read(as_of=time, columns=["_hoodie_record_key", "_hoodie_commit_time"])
    except ConfigError:
        return None
    return sorted(str(row) for batch in rows.batches for row in batch.to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_time_whose_files_a_clean_by_versions_removed_is_refused(golden: Golden, version: str) -> None:
    path = golden(version, "cow_basic").table
    table = HudiTable.open(str(path))
    first = table.timeline().commits().instants[0].requested_time
    assert count(table, as_of=first) > 0
    cleaned = hudictl("run", "clean", path, *BY_VERSIONS, "hoodie.clean.fileversions.retained=1")
    assert cleaned.code == 0, cleaned.err
    with pytest.raises(ConfigError, match=r"may have removed what the table held.*it removed .*\.parquet"):
        table.read(as_of=first)
    with pytest.raises(ConfigError, match="may have removed"):
        table.files(as_of=first)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_time_whose_files_a_clean_by_hours_removed_is_refused(golden: Golden, version: str, archived: bool) -> None:
    """As Hudi up to 0.14.0 cleans: of each file group it keeps no slice before the earliest commit to retain, here one
    that wrote to none of them.
    """
    path = golden(version, "cleaned_commits_cow").table
    table = HudiTable.open(str(path))
    context = open_context(path)
    (*_, clean) = table.timeline().completed().of_actions("clean")
    written = path / context.active.path_of(clean)
    schema, (done,) = read_container(written.read_bytes(), path="clean")
    *_, latest = table.timeline().commits().before(clean.requested_time)
    earliest = done["earliestCommitToRetain"] = str(int(latest.requested_time) - 1)
    before = answer(table, earliest)
    assert before
    view = context.view(context.active.load())
    for partition, cleaned in done["partitionMetadata"].items():
        cleaned["policy"] = "KEEP_LATEST_BY_HOURS"
        for base in view.all_base_files(partition):
            if parse_base_file(base.name).instant < earliest and base not in view.latest_base_files(partition):
                (path / base.path).unlink()
                cleaned["deletePathPatterns"].append(base.name)
                cleaned["successDeleteFiles"].append(base.name)
    written.write_bytes(write_container(schema, [done]))
    if archived:
        archive_these(path, [clean])
    table = HudiTable.open(str(path))  # completed files are remembered: nobody else writes them again
    assert answer(table, earliest) is None
    assert answer(table, table.timeline().commits().instants[-1].requested_time) is not None


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize(
    "policy",
    [
        ("hoodie.clean.commits.retained=1",),
        ("hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained=1"),
    ],
    ids=["commits", "versions"],
)
def test_a_clean_that_died_while_it_deleted_counts(golden: Golden, version: str, policy: tuple[str, ...]) -> None:
    """Of a file group whose newest slice at that time is gone, an older one that a savepoint keeps would be read."""
    path = golden(version, "cow_basic").table
    table = HudiTable.open(str(path))
    first = table.timeline().commits().instants[0].requested_time
    planned = hudictl("schedule", "clean", path, *(part for option in policy for part in ("--option", option)))
    assert planned.code == 0, planned.err
    rows = count(table, as_of=first)
    assert rows > 0, "nothing is deleted before it is inflight"
    (plan,) = table.timeline().pending().of_actions(Action.CLEAN)
    active = open_context(path).active
    active.to_inflight(plan.requested_time, Action.CLEAN)
    with pytest.raises(ConfigError, match=f"the clean {plan.requested_time} may have removed") as caught:
        table.read(as_of=first)
    assert caught.value.path == active.path(plan.requested_time, Action.CLEAN, State.REQUESTED)
    assert count(table) > 0


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["cleaned_versions_cow", "cleaned_versions_mor", "cleaned_commits_cow"])
def test_cleans_that_were_archived_count(golden: Golden, version: str, case: str) -> None:
    """What is refused because of a clean is refused when the archival has taken the clean off the timeline."""
    path = golden(version, case).table
    table = HudiTable.open(str(path))
    timeline = table.timeline()
    times = [commit.requested_time for commit in timeline.commits()]
    before = {time: answer(table, time) for time in times}
    assert None in before.values()
    cleans = timeline.completed().of_actions("clean").instants
    for number in range(len(cleans)):
        archive_these(path, cleans[number : number + 1])
        assert {time: answer(table, time) for time in times} == before
    assert not table.timeline().of_actions("clean").instants


def test_an_archived_clean_that_is_damaged_is_named(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    path = golden("9", "cleaned_versions_cow").table
    archive_these(path, HudiTable.open(str(path)).timeline().completed().of_actions("clean").instants)
    monkeypatch.setattr(LsmHistory, "content", lambda self, instant: {})
    first = HudiTable.open(str(path)).timeline().commits().instants[0].requested_time
    with pytest.raises(CorruptFileError, match="no clean metadata") as caught:
        HudiTable.open(str(path)).read(as_of=first)
    assert caught.value.path == ".hoodie/timeline/history"
