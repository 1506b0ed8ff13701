"""Which log files of the metadata table a plan names once their deltacommits are archived."""

from __future__ import annotations

from hudi_core.config.versions import V8
from hudi_core.metadata_table.read.file_group import LatestSlice
from hudi_core.metadata_table.services.compaction_planner import compaction_plan
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

BASE = FileInfo(".hoodie/metadata/files/files-0000-0_0-1-1_20260101000000300.hfile", 1 << 20, 0.0)


def log(instant: str) -> FileInfo:
    return FileInfo(f".hoodie/metadata/files/.files-0000-0_{instant}.log.1_0-0-0", 100, 0.0)


def planned(logs: tuple[FileInfo, ...], base: FileInfo | None) -> list[str]:
    """With one deltacommit on the timeline."""
    metadata_timeline = Timeline(
        [Instant("20260101000000400", Action.DELTA_COMMIT, State.COMPLETED, "20260101000000410")]
    )
    plan = compaction_plan(
        [LatestSlice("files-0000-0", "20260101000000300", base, logs)], metadata_timeline, "20260101000000500", V8
    )
    return [name.split("_")[1].partition(".")[0] for operation in plan.operations for name in operation.log_files]


def test_what_the_base_file_holds_already_is_left_out() -> None:
    """It lies on top of the newest slice, as nobody knows any more when it completed, until real Hudi cleans it away
    under the plan.
    """
    assert planned((log("20260101000000200"), log("20260101000000400")), BASE) == ["20260101000000400"]
    assert planned((log("20260101000000200"),), BASE) == []


def test_what_no_base_file_holds_stays_in() -> None:
    assert planned((log("20260101000000200"), log("20260101000000400")), None) == [
        "20260101000000200",
        "20260101000000400",
    ]
    assert planned((log("20260101000000350"),), BASE) == ["20260101000000350"]
