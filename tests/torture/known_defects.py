"""Defects of real Hudi that a random program would meet again and again.

Each is named, with its condition as narrow as it is known. What stops real Hudi's writer for good is not done
(`avoided`). After what makes its own filtered reads lose rows (`spoils_filters`) these are no longer compared; ours
are, as we have to see that an index cannot be believed.
"""

from __future__ import annotations

from pathlib import Path

from hudi_core.config.table_config import TableConfig
from hudi_core.storage.local import LocalStorage
from tests.torture.our_commands import Situation
from tests.torture.program import Command, Program, Service, Step, Write


def avoided(step: Step, now: Situation) -> str | None:
    """Why the step is not done; None where nothing is in its way."""
    if not isinstance(step, Service):
        return None
    if step.service == "clean" and _has(now.base, "expr_index_"):
        return "a clean of 1.x writes the deletions of an expression index into a wrong partition"
    if step.service == "rollback" and _is_cleaned_behind(now):
        return "a rollback does not ask whether a clean removed what the write replaced: its rows are lost"
    if step.service == "cluster" and _is_overwritten_behind(now):
        return "a clustering brings back the rows that were overwritten since its plan"
    if step.service == "archive" and _would_be_overtaken(now):
        return "1.2 takes log files of what is archived behind a restore or an indexing for those of pending commits"
    return None


def _is_cleaned_behind(now: Situation) -> bool:
    cleans = [item.requested_time for item in now.timeline if item.action == "clean"]
    return any(clean > write for write in now.last_write() for clean in cleans)


def _is_overwritten_behind(now: Situation) -> bool:
    overwritten = [effect.instant for effect in now.model.effects if effect.overwritten != frozenset()]
    return any(write > plan for plan in now.pending("clustering", "replacecommit")[:1] for write in overwritten)


def _would_be_overtaken(now: Situation) -> bool:
    """1.0, the writer of version 8, looks up the completion times of three days in the archive."""
    version = TableConfig.load(LocalStorage(now.base)).version
    return version == 9 and any(item.action in ("restore", "indexing") for item in now.timeline)


def spoils_filters(step: Step, program: Program, now: Situation) -> str | None:
    """Why real Hudi's reads by a predicate may lose rows from this step on; None where it tells its indexes all."""
    if not isinstance(step, Write):
        return None
    if program.writer == "1.2.0" and step.operation == "bulk_insert" and _has(now.base, "secondary_index_"):
        return "bulk_insert of 1.2.0 tells a secondary index nothing"
    if program.writer == "1.0.2" and _has(now.base, "partition_stats") and now.pending("compaction"):
        return "1.0.2 narrows partition_stats behind a pending compaction"
    return None


def starts_without_files(program: Program) -> bool:
    """Whether column_stats may have no record of the files that were there when a writer began it: 0.15.0 puts none
    into one that it begins again.
    """
    drops = (step for step in program.steps if isinstance(step, Command) and step.verb == "metadata drop")
    return program.writer == "0.15.0" and any("column_stats" in step.arguments for step in drops)


def _has(base: Path, prefix: str) -> bool:
    partitions = TableConfig.load(LocalStorage(base)).metadata_partitions
    return any(name.startswith(prefix) for name in partitions)
