"""`make demo-up` and `make demo-down`: an Airflow to click through, with a Hudi table and every DAG of `dags/`.

All it makes is below `.demo-up/`. Its processes are known by a mark in their environment (demo/marked.py), which
`.demo-up/state.json` holds with what is printed.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from demo import marked
from demo.rest import Airflow, Login, NotReadyError
from demo.run import ROOT, TIMEOUT_SECONDS, connections, environment, say, terminated_as_interrupted
from demo.stack import SAID_EVERY, STOP_SECONDS, DemoError, Stack
from demo.table import DemoTable
from hudi_core.errors import HudiError, Reminder

HOME = ROOT / ".demo-up"
DAGS = ROOT / "dags"
SCHEDULES = (
    "SCHEDULE",
    "DOCTOR_SCHEDULE",
    "INDEXING_SCHEDULE",
    "METADATA_SCHEDULE",
    "MAINTENANCE_SCHEDULE",
    "LOG_COMPACTION_SCHEDULE",
)

Launch = Callable[[Path, Path, Login, Mapping[str, str]], str]
"""Starts an Airflow for the table below the home, with the login and these variables, and returns its URL when all of
it is there. Raises DemoError."""


@dataclass(frozen=True, slots=True)
class State:
    """A demo that was started. `url` is empty until it is up."""

    mark: str
    user: str
    password: str
    table: str
    url: str = ""

    @property
    def login(self) -> Login:
        """Who may log in."""
        return Login(self.user, self.password)


def up(home: Path = HOME, timeout: float = TIMEOUT_SECONDS, launch: Launch | None = None) -> State:
    """Starts the demo in `home`, or finds it running there. Raises DemoError, HudiError; then nothing of it runs."""
    with _alone(home):
        before = _read(home)
        if before is not None and marked.processes(before.mark):
            return _found_running(before)
        if home.exists():
            say("An earlier demo has ended without `make demo-down`; what it left is removed")
            shutil.rmtree(home)
        started, mark = time.monotonic(), marked.new_mark()
        try:
            say("Unpacking a table that real Apache Hudi 0.15 wrote")
            table = DemoTable(home / "warehouse").path
            say("Starting Airflow (api-server, scheduler, dag-processor, triggerer); it takes a minute or two")
            state = State(mark, "admin", secrets.token_urlsafe(9), str(table))
            _write(home, state)
            start = launch or partial(launch_airflow, timeout=timeout)
            url = start(home, table, state.login, marked.variables(mark))
            state = State(mark, state.user, state.password, state.table, url)
            _write(home, state)
            say(f"It is up after {time.monotonic() - started:.0f} s")
        except BaseException as error:
            marked.end(mark, STOP_SECONDS)
            log = _tail(home / "airflow" / "standalone.log")
            shutil.rmtree(home, ignore_errors=True)
            if isinstance(error, (DemoError, NotReadyError)):
                raise DemoError(f"{error}\n--- last lines of Airflow's log\n{log}") from error
            raise
        return state


def down(home: Path = HOME) -> int:
    """Ends the demo's processes and removes its folder. Returns how many processes were running."""
    with _alone(home):
        state = _read(home)
        ended = 0 if state is None else marked.end(state.mark, STOP_SECONDS)
        if home.exists():
            shutil.rmtree(home)
            say(f"Stopped {ended} processes, removed {_shown(home)}")
        else:
            say("Nothing is running, and there is nothing to remove")
        return ended


def launch_airflow(
    home: Path, table: Path, login: Login, variables: Mapping[str, str], timeout: float, dags: Path = DAGS
) -> str:
    """The Launch of the demo: all DAGs unpaused and without a schedule, both connections in Airflow's database."""
    stack = Stack(
        home / "airflow",
        dags,
        {
            **environment(home, table),
            **{f"AIRFLOW_HUDI_{name}": "" for name in SCHEDULES},
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            **variables,
        },
        login,
    )
    stack.start()
    stack.wait_until_healthy(timeout, say)
    say("Adding the connections hudi_default (engine auto: small tables need no Spark) and spark_default")
    for name, fields in connections(table, engine="auto").items():
        stack.api.add_connection(name, fields)
    names = {path.stem for path in dags.glob("*.py")}
    missing, started, reminder = names, time.monotonic(), Reminder(time.monotonic, every=SAID_EVERY)
    while missing:
        stack.check_alive()
        if time.monotonic() > started + timeout:
            raise DemoError(f"after {timeout:.0f} s Airflow still lacks the DAGs {', '.join(sorted(missing))}")
        if reminder.is_due():
            say(f"{time.monotonic() - started:3.0f} s: {len(names - missing)} of {len(names)} DAGs are read")
        time.sleep(0.5)
        missing = names - stack.api.dag_ids()
    return stack.url


def describe(state: State) -> Iterator[str]:
    """What to look at."""
    table = _shown(Path(state.table))
    yield f"Airflow:  {state.url}   user {state.user}, password {state.password}"
    yield f"Table:    {table} (written by real Apache Hudi 0.15, a compaction is planned)"
    yield ""
    yield "Dags > hudi_compaction > Trigger > Trigger: runs the planned compaction; Logs and XCom of its task `compact`"
    yield "the same with hudi_doctor, hudi_metadata, hudi_indexing, hudi_table_maintenance; the forms need no input"
    yield "hudi_clustering: the same, and `sort_columns` in the form orders the rows"
    yield "hudi_repair: `verb` and `instant` in the form, and `yes` where it asks for that"
    yield "`engine` in each form: empty is `auto`, as hudi_default says; `spark` starts a Spark job"
    yield "hudi_clean waits for a planned clean. Once the compaction is done, this plans one:"
    yield f"    make hudictl ARGS='schedule clean {table} --option hoodie.clean.commits.retained=1'"
    yield "A backfill is refused: services work on the table as it is now, not on an interval (docs/use/airflow.md)"
    yield "Admin > Connections > hudi_default: the connection of type hudi, with its Test button"
    yield ""
    yield f"make hudictl ARGS='timeline {table}'"
    yield "make demo-down    stops Airflow and removes the table"


def _found_running(state: State) -> State:
    if not state.url:
        raise DemoError("an earlier `make demo-up` was killed while Airflow started; run `make demo-down` first")
    missing = Airflow(state.url, state.login).unhealthy()
    say("It is running" + (f", but without its {', '.join(missing)}: see `make demo-down`" if missing else ""))
    return state


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Of two commands at the same time the second waits. The folder's parent is locked, so no lock file is left."""
    home.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(home.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(home: Path) -> State | None:
    """The state that was stored; None when there is none, or half of one."""
    try:
        return State(**json.loads((home / "state.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _write(home: Path, state: State) -> None:
    """Stores it, for its owner only, in one step."""
    new = home / "state.json.new"
    new.touch(mode=0o600)
    new.write_text(json.dumps(asdict(state), indent=2) + "\n")
    new.replace(home / "state.json")


def _tail(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.is_file() else "(no log)"


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program: 0 when the demo is up, or down; 1 when it could not be started, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="make demo-up", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("up", "down"))
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_SECONDS, help="seconds for each wait (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        with terminated_as_interrupted():
            if options.what == "down":
                down()
                return 0
            for line in describe(up(timeout=options.timeout)):
                print(f"    {line}".rstrip())
    except (DemoError, HudiError) as error:
        print(f"[demo] FAILED: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("[demo] interrupted; what it was starting is stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
