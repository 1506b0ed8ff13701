"""Rolling an attempt back: what counts as one, and what a plan in the table cannot make us delete."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, CorruptFileError, FormatError
from hudi_core.filegroup.write.markers import MarkerType, create_marker
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed_attempt import Leftovers, find_leftovers, roll_back_attempt
from hudi_core.services.rollback.verb import request_rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.rollback import RollbackStep, encode_rollback_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.owner import Owner
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]

PARTITIONS = ("2024-01-01", "2024-01-02", "2024-01-03")


@dataclass
class Attempt:
    table: Path
    instant: str
    context: TableContext
    claim: Claim

    @property
    def active(self) -> ActiveTimeline:
        return self.context.active

    def find(self) -> Leftovers:
        return find_leftovers(self.context, self.instant, Action.COMPACTION, PARTITIONS)

    def roll_back(self) -> str | None:
        rollback, _ = roll_back_attempt(self.context, self.instant, Action.COMPACTION, PARTITIONS, self.claim)
        return rollback

    def base_files(self) -> list[str]:
        return sorted(path.name for path in self.table.glob(f"*/*_{self.instant}.parquet"))


@pytest.fixture
def make(golden: Golden) -> Iterator[Callable[[str], Attempt]]:
    claims: list[Claim] = []

    def opened(case: str) -> Attempt:
        table = golden("6", case).table
        storage = LocalStorage(table)
        config = TableConfig.load(storage)
        context = TableContext(str(table), storage, config, ActiveTimeline(storage, config))
        (pending,) = context.active.load().pending_compactions()
        claims.append(claim(storage, pending.requested_time, Owner.current("tester")))
        return Attempt(table, pending.requested_time, context, claims[-1])

    yield opened
    for held in claims:
        held.release()


def test_a_failed_attempt_goes_and_its_plan_stays(make: Callable[[str], Attempt]) -> None:
    attempt = make("compaction_inflight")
    left = attempt.find()
    assert len(left.files) == 3
    assert left.in_metadata_table
    rollback = attempt.roll_back()
    assert rollback is not None
    assert attempt.base_files() == []
    timeline = attempt.active.load()
    assert timeline.get(attempt.instant, Action.COMPACTION).state is State.REQUESTED
    assert timeline.get(rollback, Action.ROLLBACK).is_completed
    assert rollback == max(timeline.requested_times)
    assert attempt.roll_back() is None


def test_nothing_left_is_no_rollback(make: Callable[[str], Attempt]) -> None:
    attempt = make("mor_compaction_requested")
    attempt.active.to_inflight(attempt.instant, Action.COMPACTION)
    assert attempt.roll_back() is None
    timeline = attempt.active.load()
    assert len(timeline.of_actions(Action.ROLLBACK)) == 0
    assert timeline.get(attempt.instant, Action.COMPACTION).state is State.INFLIGHT


def test_markers_lead_to_files_outside_the_plan(make: Callable[[str], Attempt]) -> None:
    attempt = make("compaction_inflight")
    name = f"00000000-0000-0000-0000-000000000000-0_0-1-0_{attempt.instant}.parquet"
    (attempt.table / "elsewhere").mkdir()
    (attempt.table / "elsewhere" / name).write_bytes(b"orphan")
    marker = attempt.table / ".hoodie" / ".temp" / attempt.instant / "elsewhere" / f"{name}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.write_bytes(b"")
    attempt.roll_back()
    assert not (attempt.table / "elsewhere" / name).exists()
    assert not marker.exists()


def test_a_marker_that_leads_out_of_the_table_is_refused(make: Callable[[str], Attempt]) -> None:
    attempt = make("compaction_inflight")
    markers = attempt.table / ".hoodie" / ".temp" / attempt.instant
    markers.mkdir(parents=True)
    (markers / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (markers / "MARKERS0").write_text("../../etc/f-0_0-1-0_1.parquet.marker.CREATE\n")
    with pytest.raises(FormatError, match=r"'\.\.'"):
        attempt.roll_back()
    assert len(attempt.base_files()) == 3


def test_a_pending_rollback_is_resumed_and_its_paths_are_not_followed(
    make: Callable[[str], Attempt], tmp_path: Path
) -> None:
    attempt = make("compaction_inflight")
    victim = tmp_path / f"f-0_0-1-0_{attempt.instant}.parquet"
    victim.write_bytes(b"another table's")
    first = attempt.base_files()[0]
    requests = [
        RollbackStep("2024-01-01", delete=(str(victim), "/gone/not a base file")),
        RollbackStep("2024-01-01"),
    ]
    attempt.active.create_requested(
        "20991231000000000", Action.ROLLBACK, encode_rollback_plan(attempt.instant, Action.COMPACTION, requests)
    )
    assert attempt.roll_back() == "20991231000000000"
    assert victim.exists()
    assert attempt.base_files() == []
    done = attempt.active.read_any("20991231000000000", Action.ROLLBACK, State.COMPLETED)["partitionMetadata"][
        "2024-01-01"
    ]["successDeleteFiles"]
    assert [Path(path).name for path in done] == [first, victim.name]
    assert all(path.startswith(str(attempt.table)) for path in done)


def test_a_rollback_plan_that_names_nothing(make: Callable[[str], Attempt]) -> None:
    attempt = make("compaction_inflight")
    attempt.active.create_requested(
        "20991231000000000", Action.ROLLBACK, encode_rollback_plan("", Action.COMPACTION, [])
    )
    with pytest.raises(CorruptFileError, match="names no instant"):
        attempt.roll_back()


def test_a_run_that_lost_its_claim_rolls_nothing_back(make: Callable[[str], Attempt]) -> None:
    attempt = make("compaction_inflight")
    shutil.rmtree(attempt.table / ".hoodie" / ".airflow_hudi" / "claims" / attempt.instant)
    with pytest.raises(ConflictError):
        attempt.roll_back()
    assert len(attempt.base_files()) == 3


def test_an_attempt_is_not_rolled_back_while_its_instant_is_only_requested(
    make: Callable[[str], Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storage that says wrongly that the instant is inflight: the rollback would remove the plan with it."""
    attempt = make("mor_compaction_requested")
    leave_a_base_file(attempt)
    plan = attempt.active.read_requested(attempt.instant, Action.COMPACTION)
    monkeypatch.setattr(ActiveTimeline, "to_inflight", lambda *_: False)
    for _ in range(2):
        with pytest.raises(ConflictError, match="is requested and not inflight"):
            attempt.roll_back()
        assert attempt.active.read_requested(attempt.instant, Action.COMPACTION) == plan
    assert len(attempt.active.load().of_actions(Action.ROLLBACK)) == 0


def test_a_pending_rollback_of_an_attempt_keeps_a_plan_that_is_requested(make: Callable[[str], Attempt]) -> None:
    attempt = make("compaction_inflight")
    plan = attempt.active.read_requested(attempt.instant, Action.COMPACTION)
    failed = attempt.active.load().get(attempt.instant, Action.COMPACTION)
    rollback = request_rollback(attempt.context, failed, attempt.claim.owner)
    attempt.active.remove(attempt.instant, Action.COMPACTION, State.INFLIGHT)
    assert attempt.roll_back() == rollback
    timeline = attempt.active.load()
    assert timeline.get(attempt.instant, Action.COMPACTION).state is State.REQUESTED
    assert attempt.active.read_requested(attempt.instant, Action.COMPACTION) == plan
    assert timeline.get(rollback, Action.ROLLBACK).is_completed
    assert attempt.base_files() == []


def leave_a_base_file(attempt: Attempt) -> None:
    base = next(attempt.table.glob(f"{PARTITIONS[0]}/*.parquet"))
    file_id, token, _ = base.name.split("_")
    late = base.with_name(f"{file_id}_{token}_{attempt.instant}.parquet")
    late.write_bytes(b"cut off")
    create_marker(attempt.context.storage, attempt.instant, PARTITIONS[0], late.name, MarkerType.MERGE)


def test_a_folder_named_like_an_inflight_file_is_refused(make: Callable[[str], Attempt]) -> None:
    attempt = make("mor_compaction_requested")
    folder = attempt.active.path(attempt.instant, Action.COMPACTION, State.INFLIGHT)
    (attempt.table / folder).mkdir()
    with pytest.raises(FormatError, match="a folder is no file of a table") as caught:
        attempt.active.to_inflight(attempt.instant, Action.COMPACTION)
    assert caught.value.path == folder
