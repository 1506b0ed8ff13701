"""Defects of real Hudi that a random program would meet again and again: what brings them about is left out.

Each is named, with its condition as narrow as it is known (docs/hudi-notes.md has more of them).
"""

from __future__ import annotations

from pathlib import Path

from hudi_core.config.table_config import TableConfig
from hudi_core.storage.local import LocalStorage
from tests.torture.program import Program, Service, Step, Write


def avoided(step: Step, program: Program, base: Path) -> str | None:
    """Why the step is not done; None where nothing is in its way."""
    partitions = TableConfig.load(LocalStorage(base)).metadata_partitions
    if isinstance(step, Service) and step.service == "clean" and _any(partitions, "expr_index_"):
        return "a clean of 1.x writes the deletions of an expression index into a wrong partition"
    if (
        isinstance(step, Write)
        and step.operation == "bulk_insert"
        and program.writer == "1.2.0"
        and _any(partitions, "secondary_index_")
    ):
        return "bulk_insert of 1.2.0 tells a secondary index nothing"
    return None


def _any(partitions: frozenset[str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in partitions)
