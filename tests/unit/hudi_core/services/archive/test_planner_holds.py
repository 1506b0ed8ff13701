"""What holds commits on the timeline, over timelines made for it, and which reason is given."""

from __future__ import annotations

import pytest

from hudi_core.config.services.retention_config import KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, ArchiveConfig
from hudi_core.services.archive.planner import Findings, start_after
from hudi_core.timeline.actions.clean import LastClean
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.archive_plans import FEW, commits, done, open_, plan, times


@pytest.mark.parametrize(
    "action", ["commit", "deltacommit", "compaction", "logcompaction", "replacecommit", "clustering"]
)
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_the_commit_before_a_pending_write_stays(action: str, state: State) -> None:
    """hudi#4163, HUDI-2892, HUDI-5728: a pending clustering is one of them."""
    found = plan([*commits(1, 2, 3), open_(4, action, state), *commits(5, 6, 7, 8)])
    assert times(found) == [1, 2]
    assert found.reason == f"{action} 004 is pending: complete it or roll it back"


def test_a_pending_write_before_all_commits_holds_everything() -> None:
    assert times(plan([open_(1), *commits(2, 3, 4, 5, 6)])) == []


def test_pending_cleans_and_indexes_hold_nothing() -> None:
    assert times(plan([open_(1, "clean"), open_(2, "indexing"), *commits(3, 4, 5, 6, 7)])) == [3, 4, 5]


def test_a_pending_restore_holds_everything_and_a_pending_rollback_its_target() -> None:
    instants = [*commits(1, 2, 3, 4, 5, 6), *(done(time, "clean") for time in range(10, 16))]
    found = plan([*instants, open_(7, "restore")])
    assert (found.instants, found.reason) == ((), "restore 007 is pending: run it to its end first")
    found = plan([*instants, open_(7, "rollback")], rolling_back=frozenset({"003"}), counts_cleans=False)
    assert times(found) == [1, 2]
    assert found.reason == "a rollback of 003 is pending: run it to its end first"


def test_nothing_behind_the_first_savepoint_or_all_but_the_savepointed() -> None:
    instants = [*commits(1, 2, 3, 4, 5, 6), done(3, "savepoint"), open_(2, "savepoint")]
    found = plan(instants)
    assert times(found) == [1, 2]
    assert (
        found.reason == "commit 003 is savepointed: delete the savepoint, or set hoodie.archive.beyond.savepoint=true"
    )
    beyond = ArchiveConfig(keep_min=1, keep_max=4, beyond_savepoint=True)
    assert times(plan(instants, beyond)) == [1, 2, 4, 5, 6]
    found = plan(instants, beyond, Findings(hidden={"005": "p/a.parquet"}))
    assert times(found) == [1, 2, 4]
    assert "readers would not see it behind a savepointed commit" in found.reason


class TestCompaction:
    config = ArchiveConfig(keep_min=2, keep_max=4, delta_commits=3)

    def deltas(self, *numbers: int) -> list[Instant]:
        return [done(number, "deltacommit") for number in numbers]

    def test_the_deltas_that_the_next_one_counts_stay(self) -> None:
        found = plan(self.deltas(1, 2, 3, 4, 5, 6), self.config, merge_on_read=True)
        assert times(found) == [1, 2, 3]
        assert (
            found.reason
            == "the delta commits since 004 count towards the next compaction (hoodie.compact.inline.max.delta.commits)"
        )

    def test_the_last_compaction_stays_while_it_is_the_latest_and_counts_from_there(self) -> None:
        instants = [*self.deltas(1, 2, 3), done(4, "compaction"), *self.deltas(5, 6)]
        assert times(plan(instants, self.config, merge_on_read=True)) == [1, 2, 3]
        assert times(plan([*instants, *self.deltas(7, 8)], self.config, merge_on_read=True)) == [1, 2, 3, 4, 5]

    def test_in_layout_2_a_delta_counts_that_completed_after_the_compaction_began(self) -> None:
        instants = [
            done(1, "deltacommit", 2),
            done(3, "deltacommit", 9),
            done(4, "compaction", 8),
            *(done(n, "deltacommit", n + 1) for n in (11, 13)),
        ]
        late = plan(
            [*instants, done(15, "deltacommit", 16)],
            ArchiveConfig(1, 2, delta_commits=4),
            merge_on_read=True,
            counts_cleans=False,
        )
        assert times(late) == [1]

    def test_not_for_copy_on_write_and_not_for_a_trigger_by_time(self) -> None:
        assert times(plan(self.deltas(1, 2, 3, 4, 5, 6), self.config)) == [1, 2, 3, 4]
        assert times(plan(self.deltas(1, 2, 3, 4, 5, 6), FEW, merge_on_read=True)) == [1, 2, 3, 4]


class TestReplaced:
    instants = (*commits(1, 2), done(3, "replacecommit"), *commits(4, 5, 6, 7))

    def test_a_replacecommit_stays_until_a_clean_went_past_it(self) -> None:
        found = plan(self.instants)
        assert times(found) == [1, 2]
        assert found.reason == "no clean has removed the file groups yet that replacecommit 003 replaced: run one"
        assert times(plan(self.instants, last_clean=LastClean("008", "003", "007"))) == [1, 2]
        assert times(plan(self.instants, last_clean=LastClean("008", "004", "007"))) == [1, 2, 3, 4, 5]

    def test_a_clean_by_file_versions_went_past_all_before_it(self) -> None:
        assert times(
            plan(self.instants, clean_policy=KEEP_LATEST_FILE_VERSIONS, last_clean=LastClean("008", "", "007"))
        ) == [1, 2, 3, 4, 5]
        assert times(
            plan(self.instants, clean_policy=KEEP_LATEST_FILE_VERSIONS, last_clean=LastClean("002", "", "001"))
        ) == [1, 2]

    def test_a_clean_that_left_files_for_a_savepoint_went_only_up_to_it(self) -> None:
        last = LastClean("008", "005", "007", frozenset({"002"}))
        assert times(plan(self.instants, clean_policy=KEEP_LATEST_COMMITS, last_clean=last)) == [1, 2]
        early = LastClean("008", "005", "007", frozenset({"004"}))
        assert times(plan(self.instants, clean_policy=KEEP_LATEST_COMMITS, last_clean=early)) == [1, 2, 3, 4, 5]

    def test_files_that_are_still_there_hold_it_whatever_cleans_say(self) -> None:
        found = plan(
            self.instants, findings=Findings({"003": "p/a.parquet"}), last_clean=LastClean("008", "006", "007")
        )
        assert times(found) == [1, 2]
        assert "p/a.parquet is still there" in found.reason


class TestMetadataTable:
    instants = (*commits(1, 2, 3, 4, 5, 6), *(done(time, "clean") for time in (11, 12, 13, 14, 15)))

    def test_nothing_goes_before_it_was_compacted(self) -> None:
        found = plan(self.instants, has_metadata_table=True)
        assert found.instants == ()
        assert "the metadata table was never compacted" in found.reason

    def test_layout_1_by_requested_time_of_every_action(self) -> None:
        assert times(plan(self.instants, has_metadata_table=True, metadata_compaction="003001")) == [1, 2, 3]
        assert times(plan(self.instants, has_metadata_table=True, metadata_compaction="012001")) == [11, 12, 1, 2, 3, 4]

    def test_layout_2_by_completion(self) -> None:
        instants = [
            done(1, completion=2),
            done(3, completion=8),
            done(4, completion=5),
            *(done(n, completion=n + 1) for n in (10, 12, 14)),
        ]
        assert times(plan(instants, has_metadata_table=True, metadata_compaction="006", counts_cleans=False)) == [1]
        assert times(plan(instants, has_metadata_table=True, metadata_compaction="013", counts_cleans=False)) == [
            1,
            3,
            4,
            10,
        ]


class TestOrphans:
    def test_the_timeline_still_begins_before_them(self) -> None:
        found = plan(commits(1, 3, 5, 7, 9), findings=Findings(orphans={"004": ("p/a.parquet",)}))
        assert times(found) == [1]
        assert (
            found.reason
            == "p/a.parquet is of instant 004, which never completed: delete the file, or roll the instant back"
        )
        timeline = Timeline(commits(1, 3, 5, 7, 9))
        assert start_after(timeline, frozenset({"001"})) == "003" < "004"

    def test_where_the_timeline_begins_afterwards(self) -> None:
        timeline = Timeline([*commits(1, 2, 3, 4), done(2, "savepoint"), open_(3, "savepoint"), done(0, "clean")])
        assert start_after(timeline, frozenset()) == "001"
        assert start_after(timeline, frozenset({"001", "003"})) == "004"
        assert start_after(timeline, frozenset({"001"})) == "003"
        assert start_after(timeline, frozenset({"001", "002", "003", "004"})) is None


def test_by_choice_nothing_that_the_last_clean_did_not_look_at() -> None:
    config = ArchiveConfig(keep_min=2, keep_max=4, block_on_clean=True)
    last = LastClean("008", "003", "006")
    assert times(plan(commits(1, 2, 3, 4, 5, 6), config, last_clean=last)) == [1, 2]
    assert times(plan(commits(1, 2, 3, 4, 5, 6), config, last_clean=LastClean("008", "", "006"))) == [1, 2, 3, 4]
    assert times(plan(commits(1, 2, 3, 4, 5, 6), last_clean=last)) == [1, 2, 3, 4]
