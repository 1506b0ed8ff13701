"""Units of compactions with other settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_core.services.compaction.merge_slice import CompactionUnit


def configured(unit: CompactionUnit, **changes: Any) -> CompactionUnit:
    """The unit with other members of its WriteConfig."""
    files = unit.target.files
    return replace(unit, target=replace(unit.target, files=replace(files, config=replace(files.config, **changes))))
