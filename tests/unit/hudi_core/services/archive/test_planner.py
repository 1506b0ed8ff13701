"""The rules of archival over timelines made for them: what goes, how many stay, and which reason is given."""

from __future__ import annotations

import pytest

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.errors import ConfigError
from hudi_core.services.archive.planner import ArchivePlan, Findings
from tests.support.archive_plans import commits, done, open_, plan, times


def test_nothing_up_to_the_maximum_and_down_to_the_minimum_above_it() -> None:
    assert plan(commits(1, 2, 3, 4)) == ArchivePlan((), "the timeline has 4 commits and hoodie.keep.max.commits is 4")
    found = plan(commits(1, 2, 3, 4, 5))
    assert times(found) == [1, 2, 3]
    assert found.reason == "hoodie.keep.min.commits is 2"


def test_the_minimum_must_be_below_the_maximum() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.keep\.min"):
        ArchiveConfig.of({"hoodie.keep.min.commits": "30"})
    assert ArchiveConfig.of({}) == ArchiveConfig()
    assert ArchiveConfig.of({"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"}).delta_commits is None


def test_what_the_cleaner_keeps_raises_both_bounds() -> None:
    instants = commits(1, 2, 3, 4, 5, 6, 7, 8)
    found = plan(instants, cleaner_keeps="003")
    assert found.instants == ()
    assert found.reason == (
        "the timeline has 8 commits and hoodie.keep.max.commits is 9, with the commits that the cleaner keeps since 003"
    )
    assert times(plan([*instants, *commits(9, 10)], cleaner_keeps="007")) == [1, 2, 3, 4, 5]
    assert times(plan(instants, cleaner_keeps="008")) == [1, 2, 3, 4, 5, 6]


class TestCleansAndRollbacks:
    def test_layout_1_archives_each_kind_by_its_own_number(self) -> None:
        instants = [
            *commits(1, 2),
            *(done(time, "clean") for time in range(10, 15)),
            *(done(time, "rollback") for time in range(20, 24)),
        ]
        assert times(plan(instants)) == [10, 11, 12]
        assert times(plan([*instants, done(24, "rollback"), open_(25, "clean")])) == [20, 21, 22, 10, 11, 12]

    def test_layout_2_archives_those_before_the_last_commit_that_goes(self) -> None:
        instants = [
            *commits(1, 3, 5, 7, 9),
            done(2, "clean"),
            done(4, "rollback"),
            done(6, "clean"),
            open_(1, "rollback"),
            done(2, "restore"),
        ]
        assert times(plan(instants, counts_cleans=False)) == [1, 2, 2, 3, 4, 5]
        assert times(plan(instants[1:], counts_cleans=False)) == [2], "a restore that is older than all commits"

    def test_layout_2_leaves_nothing_behind_that_is_older(self) -> None:
        """Hudi archives neither indexing nor restores, and 1.2 then takes what it archived behind them for pending."""
        instants = [done(1, "indexing"), *commits(2, 3, 4, 5, 6), done(7, "indexing"), done(8, "restore")]
        assert times(plan(instants, counts_cleans=False)) == [1, 2, 3, 4]
        left_by_hudi = [done(1, "indexing"), done(2, "restore"), done(3, "clean"), *commits(4, 5), done(6, "indexing")]
        assert times(plan(left_by_hudi, counts_cleans=False)) == [1, 2]
        instants_in_metadata = [
            done(1, "indexing"),
            done(2, completion=2),
            done(3, "indexing", 4),
            done(5, completion=5),
        ]
        held = plan(instants_in_metadata, counts_cleans=False, has_metadata_table=True, metadata_compaction="002")
        assert times(held) == [1]
        assert times(plan(instants)) == [2, 3, 4], "version 6 asks for no completion times"

    @pytest.mark.parametrize("action", ["clean", "indexing"])
    def test_layout_2_passes_no_pending_instant_where_there_are_log_files(self, action: str) -> None:
        instants = [*commits(1, 2, 4, 5, 6), open_(3, action)]
        found = plan(instants, counts_cleans=False, merge_on_read=True)
        assert times(found) == [1, 2]
        assert found.reason == f"{action} 003 is pending: run it, or unschedule it"
        assert times(plan(instants, counts_cleans=False)) == times(plan(instants, merge_on_read=True)) == [1, 2, 4]

    def test_a_rollback_stays_while_a_file_is_there_that_it_should_have_deleted(self) -> None:
        """hudi#18783."""
        instants = [*commits(1, 2, 3), *(done(time, "rollback") for time in range(20, 25))]
        assert times(plan(instants)) == [20, 21, 22]
        assert times(plan(instants, findings=Findings(orphans={"021": ("a.parquet",)}))) == [20]


class TestInterrupted:
    """What an archival has written and not taken off the timeline goes, though the timeline may be short by now;
    nothing else does.
    """

    def test_layout_1(self) -> None:
        instants = [*commits(4, 5, 6), *(done(time, "clean") for time in (3, 7, 8)), done(9, "rollback")]
        left = frozenset({("004", "commit"), ("003", "clean"), ("008", "clean"), ("009", "rollback")})
        assert times(plan(instants, interrupted=left)) == [3, 4]
        assert times(plan([*instants, done(4, "savepoint")], interrupted=left)) == [3]
        assert times(plan([*instants, open_(1, "restore")], interrupted=left)) == []

    def test_layout_2(self) -> None:
        instants = [*commits(4, 6, 9), *(done(time, "clean") for time in (3, 5, 7, 8))]
        left = frozenset({("003", "clean"), ("004", "commit"), ("005", "clean")})
        assert times(plan(instants, interrupted=left, counts_cleans=False)) == [3, 4, 5]
        assert times(plan([*instants, done(4, "savepoint")], interrupted=left, counts_cleans=False)) == [3]

    def test_never_below_the_minimum(self) -> None:
        left = frozenset((f"{time:03d}", "commit") for time in (1, 2, 3))
        assert times(plan(commits(1, 2, 3), interrupted=left)) == [1]
