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
from tests.torture.program import Program, Service, Step, Write


def avoided(step: Step, base: Path) -> str | None:
    """Why the step is not done; None where nothing is in its way."""
    if isinstance(step, Service) and step.service == "clean" and _has(base, "expr_index_"):
        return "a clean of 1.x writes the deletions of an expression index into a wrong partition"
    return None


def spoils_filters(step: Step, program: Program, now: Situation) -> str | None:
    """Why real Hudi's reads by a predicate may lose rows from this step on; None where it tells its indexes all."""
    if not isinstance(step, Write):
        return None
    if program.writer == "1.2.0" and step.operation == "bulk_insert" and _has(now.base, "secondary_index_"):
        return "bulk_insert of 1.2.0 tells a secondary index nothing"
    if program.writer == "1.0.2" and _has(now.base, "partition_stats") and now.pending("compaction"):
        return "1.0.2 narrows partition_stats behind a pending compaction"
    return None


def _has(base: Path, prefix: str) -> bool:
    partitions = TableConfig.load(LocalStorage(base)).metadata_partitions
    return any(name.startswith(prefix) for name in partitions)
