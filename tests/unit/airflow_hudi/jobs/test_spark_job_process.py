from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException

from airflow_hudi.jobs.spark_job import JobSettings, SparkJob
from hudi_core.errors import ConfigError
from hudi_core.storage.local import LocalStorage
from hudi_core.verbs.batch import JobRequest
from hudi_core.verbs.run import RunRequest
from hudi_submit.job_log import JobLog
from hudi_submit.spark_submit import SparkTarget

LOCAL = SparkTarget("local[2]", "client")
CLUSTER = SparkTarget("yarn", "cluster")


class ScriptHook:
    """Does what SparkSubmitHook does with its process, for a shell script."""

    def __init__(self, script: str) -> None:
        self._command = ["/bin/sh", "-c", script]
        self._submit_sp: subprocess.Popen[str] | None = None
        self.lines: list[str] = []
        self.started = threading.Event()
        self.kills = 0

    def submit(self, application: str = "", **kwargs: Any) -> None:
        self._submit_sp = subprocess.Popen(
            [*self._command, "sh", application], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs
        )
        assert self._submit_sp.stdout is not None
        for line in self._submit_sp.stdout:
            self.lines.append(line.strip())
            self.started.set()
        if code := self._submit_sp.wait():
            raise AirflowException(f"Error code is: {code}.")

    def on_kill(self) -> None:
        self.kills += 1


class ScriptJob(SparkJob):
    """A job by such a hook."""

    _target = LOCAL

    def __init__(
        self, hook: ScriptHook, target: SparkTarget = LOCAL, *, grace_seconds: int = 20, **environ: str
    ) -> None:
        settings = JobSettings(
            environ, grace_seconds, dict, "spark", "none", {}, {}, False, lambda table: LocalStorage("/nowhere")
        )
        super().__init__(RunRequest("/nowhere", "clean"), settings)
        self._target, self._script = target, hook

    def _make_hook(self, job: JobRequest) -> tuple[Any, JobLog]:
        return self._script, JobLog(logging.getLogger("task"))


def run_in_thread(submission: SparkJob) -> tuple[threading.Thread, list[int]]:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(submission.run()))
    thread.start()
    return thread, codes


def ends(pid: int, seconds: float = 10) -> bool:
    """Whether the process ends within this time: a kill is delivered when the kernel gets to it."""
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        if Path(f"/proc/{pid}/stat").exists()
        else False
    )


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_run_returns_the_jobs_exit_code(code: int) -> None:
    assert ScriptJob(ScriptHook(f"exit {code}"), LOCAL).run() == code


def test_the_job_runs_in_a_process_group_of_its_own_with_the_environment_given() -> None:
    hook = ScriptHook('echo "$1 $GREETING $(ps -o pgid= -p $$) $$"')
    ScriptJob(hook, GREETING="hello").run()
    application, greeting, group, pid = hook.lines[0].split()
    assert (Path(application).name, greeting) == ("main.py", "hello")
    assert group == pid != str(os.getpgrp())


def test_no_spark_submit_is_bad_input() -> None:
    hook = ScriptHook("")
    hook._command = ["/no/such/spark-submit"]
    with pytest.raises(ConfigError, match="/no/such/spark-submit"):
        ScriptJob(hook, LOCAL).run()


def test_stop_lets_the_job_end_in_order() -> None:
    hook = ScriptHook("trap 'echo released; exit 143' TERM; echo up; while :; do sleep 0.05; done")
    submission = ScriptJob(hook, LOCAL)
    thread, codes = run_in_thread(submission)
    assert hook.started.wait(10)
    submission.stop()
    submission.stop()
    thread.join(10)
    assert codes == [143]
    assert [line for line in hook.lines if line != "Terminated"] == [
        "up",
        "released",
    ]  # some shells report the sleep that the signal ended
    assert submission.stopped
    assert hook.kills == 0


def test_stop_kills_what_does_not_end_and_does_not_wait_for_it() -> None:
    hook = ScriptHook("trap '' TERM; sleep 300 & echo $!; while :; do sleep 0.05; done")
    submission = ScriptJob(hook, LOCAL, grace_seconds=1)
    thread, codes = run_in_thread(submission)
    assert hook.started.wait(10)
    before = time.monotonic()
    submission.stop()
    assert time.monotonic() - before < 1
    thread.join(15)
    assert codes == [-signal.SIGKILL]
    assert ends(int(hook.lines[0]))


def test_an_interrupted_wait_stops_the_job() -> None:
    class Interrupted(ScriptHook):
        def submit(self, application: str = "", **kwargs: Any) -> None:
            self._submit_sp = subprocess.Popen(["/bin/sh", "-c", "sleep 300"], **kwargs)
            raise KeyboardInterrupt

    hook = Interrupted("")
    with pytest.raises(KeyboardInterrupt):
        ScriptJob(hook, LOCAL).run()
    assert hook._submit_sp is not None
    assert hook._submit_sp.wait(10) == -signal.SIGTERM


def test_in_cluster_mode_the_hook_stops_the_driver() -> None:
    hook = ScriptHook("echo up; sleep 300")
    submission = ScriptJob(hook, CLUSTER)
    thread, _ = run_in_thread(submission)
    assert hook.started.wait(10)
    submission.stop()
    thread.join(10)
    assert hook.kills == 1


def test_one_that_was_stopped_before_does_not_start() -> None:
    hook = ScriptHook("exit 0")
    submission = ScriptJob(hook, LOCAL)
    submission.stop()
    assert submission.run() != 0
    assert hook._submit_sp is None


@pytest.mark.parametrize("target", [LOCAL, CLUSTER])
def test_a_stop_while_the_process_is_being_started_ends_it(target: SparkTarget) -> None:
    """The hook has no process yet when the signal comes, and reads no line afterwards."""

    class Starting(ScriptHook):
        def submit(self, application: str = "", **kwargs: Any) -> None:
            submission.stop()
            time.sleep(0.2)
            super().submit(application, **kwargs)

    hook = Starting("exec sleep 5")
    submission = ScriptJob(hook, target)
    thread, codes = run_in_thread(submission)
    thread.join(20)
    assert codes == [-signal.SIGTERM]
    assert hook.kills == (target is CLUSTER)
