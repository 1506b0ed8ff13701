"""The job's own code without Spark, on the local engine, and the job beside a task: each is a fork of one process that
has imported all of it, as the imports take seconds.

As a program: `job_server.py SOCKET` serves until its standard input ends.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

CLIENT = """
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    request = os.environ["FAKE_REQUEST"] if sys.argv[2] == "spark" else ""
    words = json.dumps([sys.argv[2], request, os.getcwd(), dict(os.environ)]).encode()
    files = array.array("i", [0, 1, 2])
    server.sendmsg([len(words).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    server.sendall(words)
    answer = b""
    while piece := server.recv(64):  # ends with the job's process
        answer += piece
sys.exit(int(answer or b"137"))
"""
START_SECONDS = 120
FILE_CLOCK_MS = 10


@lru_cache(maxsize=1)
def job_server() -> str:
    """The socket of this process's server, which is started for the first that asks, and ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="jobs-")
    address = f"{folder.name}/socket"
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "spark_jobs"), str(root)])}
    process = subprocess.Popen([sys.executable, __file__, address], stdin=subprocess.PIPE, env=environment)
    atexit.register(_end, process, folder)
    deadline = time.monotonic() + START_SECONDS
    while not os.path.exists(address):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server of jobs did not start: {process.poll()}")
        time.sleep(0.02)
    return address


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(60)
    folder.cleanup()


def _serve(address: str, run_job: Callable[[str, str], int]) -> None:
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # no process waits for the jobs: they answer themselves, and leave no zombie
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(f"{address}.new")
        listener.listen()
        os.rename(f"{address}.new", address)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            if any(key.fileobj is sys.stdin for key, _ in selector.select()):
                return
            client, _ = listener.accept()
            with client:
                if os.fork() == 0:
                    os._exit(_answer(client, run_job))


def _answer(client: socket.socket, run_job: Callable[[str, str], int]) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, ancillary, _, _ = client.recvmsg(8, socket.CMSG_LEN(3 * array.array("i").itemsize))
    given = array.array("i", ancillary[0][2])
    words = b""
    while len(words) < int.from_bytes(size, "big"):
        words += client.recv(1 << 16)
    kind, request, folder, environment = json.loads(words)
    for number, descriptor in enumerate(given):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    code = run_job(kind, request)
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(str(code).encode())
    return code


def _job() -> Callable[[str, str], int]:
    import traceback

    import hudi_cli.job as local
    import hudi_spark.job as job
    from hudi_core.engine.local import LocalEngine
    from hudi_core.services import context
    from hudi_core.transaction.instant_generator import InstantClock

    class Local(LocalEngine):
        def __init__(self, *_: object, **__: object) -> None:
            super().__init__(2)

        def __enter__(self) -> Local:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def start(self) -> Local:
            return self

        def with_zone(self, request: Any) -> Any:
            return request

        open = start

    job.SessionEngine = Local  # type: ignore[assignment,misc]
    # All jobs have one clock: an instant is late enough when the times of files, which the kernel rounds, have moved.
    context.InstantClock = lambda zone, _: InstantClock(zone, FILE_CLOCK_MS)  # type: ignore[assignment,misc]
    import_all()

    def run(kind: str, request: str) -> int:
        try:
            if kind == "local":
                return local.main(0)
            return int(job.main(["--request", request]) or 0)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001 (as Python ends a process)
            traceback.print_exc()
            return 1

    return run


def import_all() -> None:
    """Imports what a job imports when it first needs it."""
    import hudi_core
    import hudi_health

    for package in (hudi_core, hudi_health):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    _serve(sys.argv[1], _job())
