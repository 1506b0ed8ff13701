"""In which a lawful plan differs from the files of a slice, and what is refused; layouts 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.planned_slices import PlanCheck, PlannedSlice
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.naming import timeline_of
from tests.support.listed_names import F, base, log
from tests.support.log_files import data, rollback
from tests.support.memory_storage import MemoryStorage

ROW = [("a", 1, "x")]
STATES = ("001.commit", "002.deltacommit", "004.deltacommit", "005.compaction.requested", "006.deltacommit")
LAYOUT_2 = ("010_015.commit", "020_025.deltacommit", "040_045.deltacommit", "050.compaction.requested")
PLANNED = PlannedSlice(F, base("001"), (log("001", 1),))


@dataclass
class Slices:
    """Files of partition p, and the table's timeline; `written` are the files that a commit's stats name."""

    layout: int = 1
    instant: str = "005"
    states: tuple[str, ...] = STATES
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    completions: Mapping[str, str] = field(default_factory=dict)
    storage: MemoryStorage = field(default_factory=MemoryStorage)

    def put(self, name: str, content: bytes = b"") -> None:
        self.storage.write(f"p/{name}", content)

    def check(self, *planned: PlannedSlice) -> None:
        timeline = timeline_of(list(self.states))
        if self.layout == 2:
            timeline = timeline_of(list(self.states), 2)
        times = {item.requested_time: item.completed_at for item in timeline.completed()} | dict(self.completions)
        PlanCheck(
            self.storage, timeline, self.layout, times.get, CommittedInstants.of(timeline), self._commit_of
        ).check(planned, {"p": self.storage.list_files("p")}, instant=self.instant, path="the plan", remedy="drop it")

    def _commit_of(self, requested: str) -> CommitMetadata | None:
        if requested not in self.written:
            return None
        stats = tuple(WriteStat("f-0", f"p/{name}", "p", "null", 0, 0, 0, 0, 0, 0) for name in self.written[requested])
        return CommitMetadata({"p": stats}, False, "UPSERT", {})


@pytest.fixture
def slices() -> Slices:
    made = Slices()
    made.put(base("001"))
    made.put(log("001", 1), data("002", ROW))
    return made


def refused(slices: Slices, planned: PlannedSlice, match: str) -> None:
    with pytest.raises(FormatError, match=match) as caught:
        slices.check(planned)
    assert "f-0 in 'p'" in caught.value.message
    assert (caught.value.path, caught.value.remedy) == ("the plan", "drop it")


def test_the_slice_as_it_is(slices: Slices) -> None:
    slices.check(PLANNED)


@pytest.mark.parametrize(
    ("planned", "match"),
    [
        (PlannedSlice(F, None, (log("001", 1),)), f"it names no base file, the slice has {base('001')}"),
        (PlannedSlice(F, base("001"), ()), "it lacks "),
    ],
)
def test_a_plan_without_a_file_of_the_slice(slices: Slices, planned: PlannedSlice, match: str) -> None:
    refused(slices, planned, match)


def test_an_older_slice(slices: Slices) -> None:
    slices.put(base("002"))
    refused(slices, PLANNED, f"the slice has {base('002')}")


def test_a_slice_of_a_write_that_is_not_completed(slices: Slices) -> None:
    slices.states = ("000.commit", "001.inflight", "005.compaction.requested")
    refused(slices, PLANNED, "no file slice was committed")
    slices.check()


def test_logs_of_the_next_slice_do_not_count(slices: Slices) -> None:
    slices.put(log("005", 1), data("006", ROW))
    slices.check(PLANNED)


def test_base_files_of_a_dead_attempt_do_not_count(slices: Slices) -> None:
    slices.put(base("005"))
    slices.check(PLANNED)


def test_a_committed_log_that_the_plan_lacks(slices: Slices) -> None:
    slices.put(log("001", 2), data("004", ROW))
    refused(slices, PLANNED, f"it lacks {log('001', 2)}".replace(".", r"\."))


def test_a_log_of_a_write_that_is_pending_or_was_rolled_back(slices: Slices) -> None:
    slices.states = (*STATES, "003.deltacommit.inflight")
    slices.put(log("001", 2), data("003", ROW))
    slices.put(log("001", 3), data("0031", ROW))
    slices.put(log("001", 4), rollback("007", "0031"))
    slices.check(PLANNED)


def test_a_log_that_was_planned_and_then_rolled_back(slices: Slices) -> None:
    slices.put(log("001", 2), data("0031", ROW))
    slices.put(log("001", 3), rollback("007", "0031"))
    slices.check(PlannedSlice(F, base("001"), (log("001", 1), log("001", 2))))


def test_a_command_whose_absence_would_bring_rows_back(slices: Slices) -> None:
    """The rolled-back instant is older than the timeline and so taken for archived: only the command rolls it back."""
    slices.put(log("001", 1), data("0005", ROW))
    slices.put(log("001", 2), rollback("003", "0005"))
    refused(slices, PLANNED, f"it lacks {log('001', 2)}".replace(".", r"\."))


def test_a_file_that_is_no_log(slices: Slices) -> None:
    slices.put(log("001", 2), b"not a log file")
    slices.put(log("001", 3))
    slices.check(PLANNED)
    with pytest.raises(CorruptFileError):
        slices.check(PlannedSlice(F, base("001"), (log("001", 1), log("001", 2))))


def test_a_log_of_a_retried_task_that_no_commit_names(slices: Slices) -> None:
    slices.put(log("001", 1, token="0-9-9"), data("002", ROW))
    refused(slices, PLANNED, "0-9-9")
    slices.written = {"002": (log("001", 1),)}
    slices.check(PLANNED)
    slices.written = {"002": (log("001", 1), log("001", 1, token="0-9-9"))}
    refused(slices, PLANNED, "0-9-9")


def test_a_base_file_of_a_retried_task(slices: Slices) -> None:
    """Hudi takes the one that the metadata table lists."""
    slices.put(base("001", token="0-9-9"), b"longer")
    refused(slices, PLANNED, "0-9-9")
    slices.written = {"001": (base("001"),)}
    slices.check(PLANNED)


def test_change_data_logs_are_no_part_of_the_slice(slices: Slices) -> None:
    slices.put(log("001", 2, tail=".cdc"), data("004", ROW))
    slices.check(PLANNED)


@pytest.fixture
def by_completion() -> Slices:
    made = Slices(2, "050", LAYOUT_2)
    made.put(base("010"))
    made.put(log("020"), data("020", ROW))
    return made


def test_layout_2_takes_what_completed_before_the_plan(by_completion: Slices) -> None:
    planned = PlannedSlice(F, base("010"), (log("020"),))
    by_completion.check(planned)
    by_completion.put(log("040"), data("040", ROW))
    refused(by_completion, planned, "it lacks")
    by_completion.check(PlannedSlice(F, base("010"), (log("020"), log("040"))))


def test_layout_2_leaves_what_was_pending_at_the_plan(by_completion: Slices) -> None:
    """t4 was requested before the plan and completed after it: its log is on top of the compacted file."""
    by_completion.states = (*LAYOUT_2[:2], "040_055.deltacommit", "050.compaction.requested")
    by_completion.put(log("040"), data("040", ROW))
    by_completion.check(PlannedSlice(F, base("010"), (log("020"),)))
    refused(by_completion, PlannedSlice(F, base("010"), (log("020"), log("040"))), "not in the slice")


def test_layout_2_archived_logs(by_completion: Slices) -> None:
    """Without a known completion a log is archived: lawful in the plan, and outside it in the newest slice."""
    by_completion.states = ("015_016.commit", *LAYOUT_2[2:])
    by_completion.storage = MemoryStorage()
    by_completion.put(base("010"))
    by_completion.put(log("012"), data("012", ROW))
    by_completion.put(log("040"), data("040", ROW))
    by_completion.check(PlannedSlice(F, base("010"), (log("012"), log("040"))))
    by_completion.check(PlannedSlice(F, base("010"), (log("040"),)))
    by_completion.completions = {"012": "013"}
    refused(by_completion, PlannedSlice(F, base("010"), (log("040"),)), "it lacks")
