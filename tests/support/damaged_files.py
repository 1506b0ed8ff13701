"""Every file of a table damaged, one at a time, before a command of hudictl that changes the table."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.support.golden_data import GoldenCase

Damage = Literal["cut", "flipped", "missing", "empty"]
DAMAGES: tuple[Damage, ...] = ("cut", "flipped", "missing", "empty")
Tree = dict[str, tuple[int, str]]


@dataclass(frozen=True)
class Command:
    """A command that changes a golden table; TABLE, PENDING, OLDEST and NEWEST stand for it and its instants."""

    case: str
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join(part for part in self.arguments[:3] if part != "TABLE" and not part.startswith("-"))


_ONE_COMMIT = ("--option", "hoodie.cleaner.commits.retained=1", "--option", "hoodie.clean.commits.retained=1")
_FEW = ("--option", "hoodie.keep.max.commits=3", "--option", "hoodie.keep.min.commits=2")
_RECORD_INDEX = ("--option", "hoodie.metadata.record.index.enable=true")

COMMANDS = (
    Command("mor_compaction_requested", ("run", "compaction", "TABLE", "--engine", "local")),
    Command("mor_compaction_requested_only", ("unschedule", "TABLE", "PENDING")),
    Command("mor_compaction_requested", ("savepoint", "create", "TABLE")),
    Command("clean_requested_mor", ("run", "clean", "TABLE", "--engine", "local")),
    Command("mor_compacted", ("schedule", "clean", "TABLE", *_ONE_COMMIT)),
    Command("mor_basic", ("rollback", "TABLE", "--instant", "NEWEST")),
    Command("mor_basic", ("restore", "TABLE", "--instant", "OLDEST")),
    Command("mor_basic", ("run", "archive", "TABLE", *_FEW, *_ONE_COMMIT)),
    Command("mor_basic", ("metadata", "create", "TABLE", "--partition", "column_stats")),
    Command("mor_basic", ("metadata", "update", "TABLE")),
    Command("mor_basic", ("metadata", "drop", "TABLE")),
    Command("mor_basic", ("run", "indexing", "TABLE", "--engine", "local", "--schedule", *_RECORD_INDEX)),
)


def tree(table: Path) -> Tree:
    """Every file with its size and the hash of its content."""
    files = (path for path in table.rglob("*") if path.is_file())
    return {
        str(path.relative_to(table)): (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files
    }


def damaged_copies(table: Path, scratch: Path, part: int, parts: int) -> Iterator[tuple[str, Damage, Path]]:
    """Copies of `table`, each with one damage, of which only the `part`-th of `parts` are made; each is removed
    behind its use.
    """
    paths = sorted(path.relative_to(table) for path in table.rglob("*") if path.is_file() and path.suffix != ".crc")
    for number, (path, damage) in enumerate((path, damage) for path in paths for damage in DAMAGES):
        if number % parts != part:
            continue
        copy = scratch / f"damaged-{number}"
        shutil.copytree(table, copy)
        _damage(copy / path, damage)
        (copy / path).with_name(f".{path.name}.crc").unlink(missing_ok=True)
        yield str(path), damage, copy
        shutil.rmtree(copy)


def _damage(file: Path, damage: Damage) -> None:
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
        return
    middle = len(data) // 2
    changed = {
        "cut": data[:middle],
        "flipped": data[:middle] + bytes(byte ^ 0x55 for byte in data[middle : middle + 8]) + data[middle + 8 :],
        "empty": b"",
    }[damage]
    moment = file.stat().st_mtime
    file.write_bytes(changed)
    os.utime(file, (moment, moment))


def arguments_of(command: Command, case: GoldenCase, table: Path) -> list[str]:
    """The arguments with the table and its instants in them."""
    folder = case.table / ".hoodie"
    names = sorted(path.name for where in (folder, folder / "timeline") if where.is_dir() for path in where.iterdir())
    done = [name for name in names if name.endswith((".commit", ".deltacommit"))]
    pending = [name for name in names if name.endswith(".compaction.requested")]
    values = {"TABLE": str(table), "OLDEST": _time(done[0]), "NEWEST": _time(done[-1])}
    if pending:
        values["PENDING"] = _time(pending[0])
    return [values.get(part, part) for part in command.arguments]


def _time(name: str) -> str:
    return name.split(".")[0].split("_")[0]
