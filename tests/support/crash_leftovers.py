"""What a writer or a machine that died left on the timeline of a local table: files without content, or without their
end.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from hudi_core.config.table_config import TableConfig
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.rollback import encode_rollback_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_restore_plan

LATE = "20990101000000000"
HOUR = 3600.0


def aged(path: Path, seconds: float = 2 * HOUR) -> Path:
    """The file, last changed so long ago."""
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


def left_file(
    table: Path,
    active: ActiveTimeline,
    action: str = Action.ROLLBACK,
    state: State = State.REQUESTED,
    content: bytes = b"",
    instant: str = LATE,
) -> Path:
    """A file of the table's timeline `active` that was last changed two hours ago."""
    path = table / active.path(instant, action, state)
    path.write_bytes(content)
    return aged(path)


def left_by_a_restore(table: Path) -> str:
    """The inflight rollback of an instant that the table's completed restore rolled back: its writer died before it had
    deleted the rollback.
    """
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    (restore,) = active.load().completed().of_actions(Action.RESTORE)
    first = read_restore_plan(active, restore.requested_time).instants[0]
    rollback = str(int(restore.requested_time) + 5)
    plan = encode_rollback_plan(first.time, first.action, [])
    left_file(table, active, content=plan, instant=rollback)
    left_file(table, active, state=State.INFLIGHT, instant=rollback)
    return rollback
