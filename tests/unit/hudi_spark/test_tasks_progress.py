"""Progress by files in a folder."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hudi_spark.tasks import ProgressFolder


def wait_for(seen: list[tuple[int, int]], value: tuple[int, int]) -> None:
    deadline = time.monotonic() + 10
    while value not in seen:
        assert time.monotonic() < deadline, seen
        time.sleep(0.02)


def test_ticks_are_counted_while_the_job_runs() -> None:
    seen: list[tuple[int, int]] = []
    with ProgressFolder(3, lambda done, total: seen.append((done, total))) as folder:
        assert seen == [(0, 3)]
        ProgressFolder.tick(folder.path, 2)
        wait_for(seen, (1, 3))
        ProgressFolder.tick(folder.path, 0)
        # A second attempt of a unit is no second unit.
        ProgressFolder.tick(folder.path, 2)
        wait_for(seen, (2, 3))
        kept = Path(str(folder.path))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert not kept.exists()


def test_a_failed_job_does_not_claim_to_be_done() -> None:
    seen: list[tuple[int, int]] = []
    folder = ProgressFolder(2, lambda done, total: seen.append((done, total)))
    with pytest.raises(ValueError, match="failed"), folder:
        raise ValueError("failed")
    assert seen == [(0, 2)]
    assert folder.path is not None
    assert not Path(folder.path).exists()


def test_without_a_listener_no_call_is_made() -> None:
    with ProgressFolder(2, None) as folder:
        assert folder.path is None
        ProgressFolder.tick(folder.path, 1)


def test_a_folder_of_another_machine_does_not_fail_the_unit(tmp_path: Path) -> None:
    ProgressFolder.tick(str(tmp_path / "gone"), 1)
    assert list(tmp_path.iterdir()) == []
