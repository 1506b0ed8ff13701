"""Ends the processes of a job: gently, then by force, without a wait in the task that is being killed."""

from __future__ import annotations

import os
import signal
import subprocess

# Waits until the process group $1 has ended and kills its remaining processes after $2 seconds. It is a process of its
# own: Airflow's supervisor gives a killed task 5 s before SIGKILL, which is less than Spark's shutdown may take.
_REAPER = (
    'n=0; while kill -0 "-$1" 2>/dev/null; do [ "$n" -ge "$2" ] && { kill -KILL "-$1"; exit; }; sleep 1; '
    "n=$((n+1)); done"
)


def end_group(group: int, *, grace_seconds: int) -> None:
    """Sends SIGTERM to a process group, and SIGKILL to what is left of it after `grace_seconds`. Does not wait: it is
    called from a signal handler.
    """
    try:
        os.killpg(group, signal.SIGTERM)
    except ProcessLookupError:
        return  # it has ended
    subprocess.Popen(
        ["/bin/sh", "-c", _REAPER, "reaper", str(group), str(grace_seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
