"""From an empty folder to the first service on one's own table by Airflow, by docs/use/install.md as it is written.

`python -m benchmarks.first_hour` runs the page's commands with pip and with uv, each in an empty folder with an empty
HOME, cold caches and no Java on PATH. The table is a copy of one that real Hudi wrote, with a compaction planned. Then
the extras of the storages are resolved and opened (benchmarks/first_hour_extras.py). Stores
benchmarks/results/first_hour.json; raises when a step fails, when the compaction is not completed on the timeline, when
the steps take over ten minutes, or an extra over one to resolve.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.first_hour_extras import measure_extras, open_extras
from benchmarks.install_page import INSTALLERS, Block, blocks
from benchmarks.measure import machine, store
from benchmarks.soak import KEPT_PREFIXES, KEPT_VARIABLES, bare_path, left_running
from demo.run import judge
from demo.table import DemoTable
from hudi_core.timeline.instant import Instant

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "first_hour.json"
LIMIT_SECONDS = 600.0
TRIES_SECONDS = 180.0
STOP_SECONDS = 20.0
PARTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")


class Newcomer:
    """A shell whose variables and folder live on from one block of the page to the next."""

    def __init__(self, folder: Path, installer: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self._work = folder / "work"
        self._work.mkdir()
        self._state = folder / "variables.sh"
        self._log = folder / "commands.log"
        self._server: subprocess.Popen[bytes] | None = None
        self.port, worker_log, trigger_log = _free_ports(3)
        path = bare_path(folder / "bin")
        if installer == "uv":
            (folder / "bin" / "uv").symlink_to(Path(sys.executable).parent / "uv")
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name in KEPT_VARIABLES or (name.startswith(KEPT_PREFIXES) and name != "UV_CACHE_DIR")
        }
        self._environment |= {
            "HOME": str(self.home),
            "PATH": path,
            "PIP_NO_CACHE_DIR": "1",
            "UV_NO_CACHE": "1",
            # This machine may have another Airflow on the ports of the page.
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self.port}/execution/",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_log),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_log),
        }

    def run(self, commands: str, timeout: float = LIMIT_SECONDS) -> str:
        """The output of commands that succeed. Raises RuntimeError with it when one of them fails."""
        script = f"set -e\n{self._before()}\n{commands}\nexport -p >{self._state}\n"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._work,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        with self._log.open("a") as log:
            log.write(f"$ {commands}{done.stdout}{done.stderr}")
        if done.returncode != 0:
            raise RuntimeError(f"{commands}ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def serve(self, commands: str) -> None:
        """Starts what stays in the foreground, and returns when Airflow's components say that they are healthy."""
        with (self.folder / "server.log").open("wb") as log:
            self._server = subprocess.Popen(
                ["bash", "-c", f"{self._before()}\nexec {commands}"],
                cwd=self._work,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + TRIES_SECONDS
        while not self._healthy():
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Airflow does not serve: {self.server_log()}")
            time.sleep(0.5)

    def server_log(self) -> str:
        """The end of what the server printed."""
        return (self.folder / "server.log").read_text(errors="replace")[-6000:]

    def stop(self) -> None:
        """Ends the server and all that it started."""
        if self._server is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._server.pid, number)
                self._server.wait(STOP_SECONDS)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self._server = None

    def _before(self) -> str:
        return f". {self._state}" if self._state.exists() else ":"

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v2/monitor/health", timeout=10) as answer:
                health = json.load(answer)
        except (OSError, urllib.error.URLError, ValueError):
            return False
        return all((health.get(part) or {}).get("status") == "healthy" for part in PARTS)


def first_service(folder: Path, installer: str) -> tuple[Newcomer, dict[str, Any]]:
    """The page's steps with their seconds. Raises when one fails or the service did not complete."""
    reader = Newcomer(folder, installer)
    table = DemoTable(folder / "warehouse")
    planned, before = table.planned(), table.counts()
    steps: list[dict[str, Any]] = []
    try:
        for block in blocks(installer):
            started = time.monotonic()
            _perform(reader, block, table)
            if block.kind == "":
                print(f"[first hour] {installer}: {block.title}", file=sys.stderr)
            steps.append(_as_step(block, time.monotonic() - started))
            if "airflow dags trigger" in block.commands:
                started = time.monotonic()
                _wait_until_completed(reader, table, planned)
                waited = time.monotonic() - started
                steps.append({"step": block.step, "title": "the compaction completes", "seconds": round(waited, 1)})
        states = _states_of_the_runs(reader)
        versions = _versions(reader, installer)
    finally:
        reader.stop()
    judge(table, planned, before, table.counts())
    running = left_running(str(folder))
    if running:
        raise RuntimeError(f"processes are left: {running}")
    total = round(sum(step["seconds"] for step in steps), 1)
    if total > LIMIT_SECONDS:
        raise RuntimeError(f"{installer}: {total} s from the empty folder to the first service: {steps}")
    return reader, {"seconds": total, "steps": steps, "states_of_the_runs": states, "versions": versions}


def _perform(reader: Newcomer, block: Block, table: DemoTable) -> None:
    if block.kind == "yours":
        own = {"CHECKOUT": str(ROOT), "WAREHOUSE": str(table.path.parent), "TABLE": table.path.name}
        asked = {line.removeprefix("export ").split("=")[0] for line in block.commands.splitlines()}
        if asked != set(own):
            raise RuntimeError(f"the page asks the reader for {sorted(asked)}, not for {sorted(own)}")
        reader.run("".join(f"export {name}={value}\n" for name, value in own.items()))
    elif block.kind == "server":
        reader.serve(block.commands)
    elif "airflow dags trigger" in block.commands:
        _as_soon_as_listed(reader, block.commands)
    else:
        reader.run(block.commands)


def _as_soon_as_listed(reader: Newcomer, commands: str) -> None:
    """Airflow needs some seconds to parse the DAGs; until then the commands fail."""
    deadline = time.monotonic() + TRIES_SECONDS
    while True:
        try:
            reader.run(commands)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(2)
        else:
            return


def _wait_until_completed(reader: Newcomer, table: DemoTable, planned: Instant) -> None:
    """Returns when the planned compaction is completed. Raises RuntimeError with Airflow's log after ten minutes."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        if any(found.is_completed for found in table.timeline() if found.requested_time == planned.requested_time):
            return
        time.sleep(1)
    raise RuntimeError(f"compaction {planned.requested_time} is not completed: {reader.server_log()}")


def _states_of_the_runs(reader: Newcomer) -> list[str]:
    """The states of the DAG's runs, once none is queued or running. Raises RuntimeError unless all succeeded."""
    deadline = time.monotonic() + TRIES_SECONDS
    while True:
        printed = reader.run("airflow dags list-runs hudi_compaction --output json 2>/dev/null\n")
        states = [str(run["state"]) for run in json.loads(printed[printed.index("[{") :])]
        if not {"queued", "running"} & set(states):
            break
        if time.monotonic() > deadline:
            raise RuntimeError(f"the runs are {states}: {reader.server_log()}")
        time.sleep(2)
    if set(states) != {"success"}:
        raise RuntimeError(f"the runs are {states}: {reader.server_log()}")
    return states


def _as_step(block: Block, seconds: float) -> dict[str, Any]:
    return {
        "step": block.step,
        "title": block.title,
        "commands": block.commands.splitlines(),
        "seconds": round(seconds, 1),
    }


def _versions(reader: Newcomer, installer: str) -> dict[str, str]:
    own = ("airflow-hudi", "airflow-hudi-engine")
    names = ("apache-airflow", "apache-airflow-providers-apache-spark", "pyspark", *own)
    program = f"from importlib.metadata import version; print(*(version(name) for name in {names}))"
    found = dict(zip(names, reader.run(f'python -c "{program}"\n').split(), strict=True))
    return found | {installer: reader.run(f"{installer} --version\n").split()[1]}


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def main() -> None:
    """Runs it all and stores the result."""
    scratch = Path(tempfile.mkdtemp(prefix="airflow-hudi-first-hour-"))
    try:
        found: dict[str, Any] = {"machine": machine(), "limit_seconds": LIMIT_SECONDS}
        for installer in INSTALLERS:
            reader, found[installer] = first_service(scratch / installer, installer)
            print(f"[first hour] {installer}: {found[installer]['seconds']} s", file=sys.stderr)
        found["extras"] = measure_extras(reader.run, scratch, ROOT / "constraints")
        found["opened"] = open_extras(reader.run, scratch / "uv" / "warehouse")
        store(RESULTS, found)
        print(json.dumps(found, indent=2))
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
