"""What the start of a whole Airflow says."""

from __future__ import annotations

from pathlib import Path

from demo.rest import Airflow
from demo.stack import Stack


class Starting(Airflow):
    """One component after the other is there."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.left = [["scheduler", "triggerer"], ["scheduler", "triggerer"], ["triggerer"], []]

    def unhealthy(self) -> list[str]:
        return self.left.pop(0)


def test_a_start_says_what_is_not_there_yet_and_what_airflow_does(tmp_path: Path) -> None:
    stack, said = Stack(tmp_path, tmp_path / "dags", {}), list[str]()
    stack.api = Starting()
    stack.log.write_text("2026-01-02T03:04:05.678901Z [info     ] Creating tables     [airflow.utils.db] loc=db.py:1\n")
    stack.wait_until_healthy(60.0, said.append)
    assert [line.split("s: ", 1)[1] for line in said] == [
        "waiting for Airflow's scheduler, triggerer; it says: Creating tables",
        "waiting for Airflow's triggerer; it says: Creating tables",
    ]
