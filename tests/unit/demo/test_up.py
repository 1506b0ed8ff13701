"""`make demo-up` and `make demo-down` with a process that sleeps in Airflow's place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from demo import marked, up
from demo.rest import Login
from demo.stack import DemoError
from hudi_core.table import HudiTable


class Airflow:
    """The Launch of these tests."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def __call__(self, home: Path, table: Path, login: Login, variables: Mapping[str, str]) -> str:
        command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
        process = subprocess.Popen(
            command, env={**os.environ, **variables}, start_new_session=True, stdout=subprocess.PIPE
        )
        self.processes.append(process)
        assert process.stdout is not None
        with process.stdout as started:  # others see its environment
            started.readline()
        return "http://127.0.0.1:1"

    def running(self) -> list[int]:
        """The ids of those that have not ended."""
        return [process.pid for process in self.processes if process.poll() is None]


@pytest.fixture
def airflow() -> Iterator[Airflow]:
    """What it started is ended after the test."""
    found = Airflow()
    yield found
    for process in found.processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's table."""
    return up.DemoTable(tmp_path_factory.mktemp("unpacked") / "warehouse").path


@pytest.fixture
def home(tmp_path: Path, unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo is to be. Its table is a copy, as it takes half a second to unpack."""

    def copy(warehouse: Path) -> SimpleNamespace:
        return SimpleNamespace(path=shutil.copytree(unpacked, warehouse / unpacked.name))

    monkeypatch.setattr(up, "DemoTable", copy)
    return tmp_path / "demo-up"


def test_it_leaves_airflow_and_a_table_with_a_planned_compaction(home: Path, airflow: Airflow) -> None:
    state = up.up(home, launch=airflow)

    assert len(airflow.running()) == 1
    assert [str(instant.action) for instant in HudiTable.open(state.table).timeline().pending()] == ["compaction"]
    shown = "\n".join(up.describe(state))
    assert [text for text in (state.url, state.user, state.password, state.table) if text not in shown] == []
    assert (home / "state.json").stat().st_mode & 0o077 == 0, "others may read the password"


def test_it_says_what_a_backfill_does() -> None:
    """The same as the DAGs do: they allow no run of that type."""
    shown = "\n".join(up.describe(up.State("0" * 32, "admin", "secret", "/t", "http://127.0.0.1:1")))
    assert "A backfill is refused" in shown
    assert "not on an interval" in shown


def test_a_second_demo_up_finds_the_first(home: Path, airflow: Airflow, capsys: pytest.CaptureFixture[str]) -> None:
    first = up.up(home, launch=airflow)
    capsys.readouterr()

    assert up.up(home, launch=airflow) == first

    assert "It is running" in capsys.readouterr().out
    assert len(airflow.processes) == 1


def test_demo_down_ends_it_and_removes_its_folder(home: Path, airflow: Airflow) -> None:
    up.up(home, launch=airflow)
    assert up.down(home) == 1
    assert airflow.running() == []
    assert not home.exists()


def test_demo_down_with_nothing_running_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert up.down(home) == 0
    assert "Nothing is running" in capsys.readouterr().out


@pytest.mark.parametrize("then", ["up", "down"])
def test_what_a_restart_left_harms_no_foreign_process(
    home: Path, airflow: Airflow, then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo's processes are gone, those that run now have other marks: a demo of another checkout, an Airflow."""
    airflow(home, home, Login("", ""), marked.variables(marked.new_mark()))
    airflow(home, home, Login("", ""), {"AIRFLOW_HOME": str(home / "airflow")})
    foreign = airflow.running()
    home.mkdir()
    left = up.State("0" * 32, "admin", "secret", str(home / "warehouse" / "table"), "http://127.0.0.1:1")
    (home / "state.json").write_text(json.dumps({name: getattr(left, name) for name in left.__slots__}))

    if then == "down":
        assert up.down(home) == 0
        assert not home.exists()
    else:
        state = up.up(home, launch=airflow)
        assert state.mark != left.mark
        assert "has ended without `make demo-down`" in capsys.readouterr().out

    assert set(foreign) <= set(airflow.running())


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1}', "[]"])
def test_a_broken_state_file_is_no_demo(home: Path, text: str) -> None:
    home.mkdir()
    (home / "state.json").write_text(text)
    assert up.down(home) == 0
    assert not home.exists()


def test_a_start_that_fails_leaves_nothing(home: Path, airflow: Airflow) -> None:
    def launch(home: Path, table: Path, login: Login, variables: Mapping[str, str]) -> str:
        airflow(home, table, login, variables)
        (home / "airflow").mkdir()
        (home / "airflow" / "standalone.log").write_text("no port is free")
        raise DemoError("it did not start")

    with pytest.raises(DemoError, match=r"(?s)it did not start.*no port is free"):
        up.up(home, launch=launch)

    assert airflow.running() == []
    assert not home.exists()


def test_what_was_killed_while_it_started_has_to_be_stopped_first(home: Path, airflow: Airflow) -> None:
    """demo-up got SIGKILL before Airflow was up: its processes have the mark, no URL is known."""
    state = up.up(home, launch=airflow)
    (home / "state.json").write_text(
        json.dumps({"mark": state.mark, "user": state.user, "password": state.password, "table": state.table})
    )
    with pytest.raises(DemoError, match="make demo-down"):
        up.up(home, launch=airflow)
    assert up.down(home) == 1
    assert airflow.running() == []


def test_the_program_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(**_: object) -> up.State:
        raise DemoError("no airflow here")

    monkeypatch.setattr(up, "up", fail)
    assert up.main(["up"]) == 1
    assert "FAILED: no airflow here" in capsys.readouterr().err
