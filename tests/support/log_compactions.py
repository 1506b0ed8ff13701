"""Log compactions of golden tables: planning and running them, and reading as a reader that does not know them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.filegroup.read import log_scan
from hudi_core.request.results import InstantResult
from hudi_core.services.compaction.log_planner import LogCompactionService
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.service import Scheduled
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.golden_compactions import context_of

PLANNED = "log_compaction_requested"
"""The golden tables with a pending log compaction, one of each version."""
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")
ENABLED = {"hoodie.log.compaction.enable": "true"}
FROM_ONE = {**ENABLED, "hoodie.log.compaction.blocks.threshold": "1"}
"""Any log block is worth merging."""


def planned(table: Path) -> str:
    """The instant of the one pending log compaction."""
    context = context_of(table)
    (instant,) = LogCompactionService().pending(context, context.active.load())
    return instant


def schedule(table: Path, options: Mapping[str, str] = FROM_ONE, *, dry_run: bool = False) -> Scheduled:
    """Plans a log compaction."""
    return LogCompactionService().schedule(context_of(table, options), OWNER, dry_run=dry_run)


def merge_logs(
    table: Path, instant: str | None = None, options: Mapping[str, str] | None = None, engine: Engine | None = None
) -> InstantResult:
    """Runs a log compaction, by default the one that is pending."""
    return LogCompactionService().run(
        context_of(table, options), instant or planned(table), engine or LocalEngine(2), OWNER, None
    )


def compact_all(table: Path) -> InstantResult:
    """Plans a compaction of every slice with log files, and runs it."""
    context = context_of(table, {"hoodie.compact.inline.max.delta.commits": "1"})
    done = CompactionService().schedule(context, OWNER, dry_run=False)
    assert done.instant is not None, done.reason
    return CompactionService().run(context, done.instant, LocalEngine(2), OWNER, None)


def drop_plans(table: Path) -> None:
    """Removes pending compactions of layout 2, as if none had been planned."""
    active = context_of(table).active
    for instant in active.load().pending_compactions():
        for state in ("inflight", "requested"):
            (table / active.folder / f"{instant.requested_time}.{Action.COMPACTION}.{state}").unlink(missing_ok=True)


@contextmanager
def reader_without_log_compaction() -> Iterator[None]:
    """Log blocks are read in the order of the log files, as Hudi 0.15 and 1.0 do by default (scanInternalV1)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_scan, "_place_compacted", lambda blocks: blocks)
        yield
