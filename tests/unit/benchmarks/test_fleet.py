"""What is stored of an idle table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import fleet
from benchmarks.measure import Cost


def test_an_idle_table_is_stored_by_task_and_by_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(seconds: dict[str, float], wall: float) -> dict[str, Any]:
        return {"seconds": seconds, "run_seconds": wall, "tasks": dict.fromkeys(seconds, "success")}

    runs = [run({"clean": 9.0, "archive": 9.0}, 30.0), run({"clean": 1.0, "archive": 1.5}, 4.0)]
    monkeypatch.setattr(fleet, "run_dags", lambda environment, requested: (Cost(0.0, 0.0, 0), runs))
    found = fleet.idle(tmp_path / "table", tmp_path)
    assert found["machine"]["cores"] > 0
    assert {name: found[name] for name in found if name not in ("machine", "commit")} == {
        "seconds_per_task": {"clean": 1.0, "archive": 1.5},
        "task_seconds_per_dag_run": 2.5,
        "wall_seconds_per_dag_run": 4.0,
        "states": {"clean": "success", "archive": "success"},
    }
