"""The files of a table."""

from __future__ import annotations

from pathlib import Path


def contents(table: Path) -> dict[str, bytes]:
    """Every file's content, by its path in the table: equal before and after means that nothing was written."""
    return {path.relative_to(table).as_posix(): path.read_bytes() for path in table.rglob("*") if path.is_file()}
