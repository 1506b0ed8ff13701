"""A hostile table from a number, what hudictl does with it, and what is wrong with that: `case_of(seed)`, `run_case`.

Four numbers share a kind of file and a table; each has its own file, mutation and command. A query is compared with the
same query of the undamaged table where the kind of file and the nature of the mutation say that its rows are kept
(file_kinds.py); a service with what a query without the metadata table read just before it, since services never change
rows, whatever the table looks like.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

import pyarrow as pa

from tests.hostile.change import Changed, Nature, NotApplicableError
from tests.hostile.commands import OUTPUT, SNAPSHOT_OFF, TABLE, Command, choose
from tests.hostile.file_kinds import METADATA, kept_of, weight_of
from tests.hostile.forked import Ended, run_forked
from tests.hostile.hfile_cells import change_hfile
from tests.hostile.judge import Fault, faults_of, is_reported, row_faults, rows_in, tree_faults
from tests.hostile.log_blocks import change_log
from tests.hostile.parquet_footers import change_parquet
from tests.hostile.placed_files import ON_EVERY_KIND, foreign_claim
from tests.hostile.table_copies import Golden, content, files_by_kind, tree_of, write_copy
from tests.hostile.timeline_files import change_control_file

A_TABLE = 4
"""Numbers that share a table."""
CLAIMS = "claim"
ATTEMPTS = 500
"""Of some kinds every file is empty, and few of the changes apply."""
_INSTANT = re.compile(r"^\.hoodie/(?:timeline/)?(\d{14,17})(?:_\d+)?(\.[a-z.]+)$")


@dataclass
class Case:
    """A hostile table: what was done to which file, and what hudictl is asked."""

    seed: int
    kind: str
    table: Golden
    path: str
    nature: Nature
    what: str
    command: Command


@dataclass
class Report:
    """How a case ended. `mode` is on or off: whether the command used the metadata table."""

    case: Case
    mode: str
    ended: Ended
    faults: list[Fault] = field(default_factory=list)


def run_case(seed: int) -> Report:
    """Makes the table of a number in a folder of its own, runs the command, and judges."""
    scratch = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        case, base = _make(seed, scratch)
        return _judge(case, base, scratch / "out.parquet")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _make(seed: int, scratch: Path) -> tuple[Case, Path]:
    group, random = Random(f"hostile/{seed // A_TABLE}"), Random(f"hostile/case/{seed}")
    kinds = files_by_kind()
    kind = group.choices([*kinds, CLAIMS], [weight_of(kind) for kind in [*kinds, CLAIMS]])[0]
    for attempt in range(ATTEMPTS):
        table, _ = group.choice(kinds[kind] if kind != CLAIMS else kinds[group.choice(list(kinds))])
        base = write_copy(table, scratch / f"{attempt}")
        instants = _instants(content(table))
        pending = [instant for instant, states in instants.items() if not any("." not in state[1:] for state in states)]
        command = choose(random, kind, list(instants), pending)
        if kind == CLAIMS:
            instant = random.choice(pending or list(instants) or ["20260101000000000"])
            path, what = foreign_claim(base, instant, random)
            return Case(seed, kind, table, path, Nature.EDIT, what, command), base
        siblings = sorted(other for of, other in kinds[kind] if of == table)
        path = random.choice(siblings)
        try:
            nature, what = _mutate(base, path, random, siblings)
        except NotApplicableError:
            shutil.rmtree(base)
            continue
        return Case(seed, kind, table, path, nature, what, command), base
    raise RuntimeError(f"no mutation of any {kind} applied")


def _instants(files: dict[str, tuple[bytes, float]]) -> dict[str, list[str]]:
    """The instants of the data timeline, with the endings of their files."""
    found: dict[str, list[str]] = {}
    for path in sorted(files):
        if match := _INSTANT.match(path):
            found.setdefault(match[1], []).append(match[2])
    return found


Change = Callable[[bytes, Random, Sequence[bytes]], Changed]
_BY_START: tuple[tuple[bytes, Change], ...] = (
    (b"#HUDI#", change_log),
    (b"PAR1", change_parquet),
    (b"DATABLK*", change_hfile),
)


def _mutate(base: Path, path: str, random: Random, siblings: Sequence[str]) -> tuple[Nature, str]:
    """One in three changes the tree, the others what the file says. Raises NotApplicableError."""
    if random.randrange(3) == 0:
        return random.choice(ON_EVERY_KIND)(base, path, random, siblings)
    data = (base / path).read_bytes()
    if not data:
        raise NotApplicableError
    change = next((change for start, change in _BY_START if data.startswith(start)), change_control_file)
    if change is change_control_file and b"\0" in data[:200] and not data.startswith(b"Obj\1"):
        raise NotApplicableError
    changed = change(data, random, [(base / sibling).read_bytes() for sibling in siblings[:20]])
    if changed.data == data:
        raise NotApplicableError
    (base / path).write_bytes(changed.data)
    return changed.nature, changed.what


def _judge(case: Case, base: Path, output: Path) -> Report:
    command = case.command
    before = tree_of(base)
    mode = command.mode or "off"
    if mode == "auto":
        mode = "on" if any(path.startswith(METADATA) for path in content(case.table)) else "off"
    rows_before = _rows(SNAPSHOT_OFF, base, output)[0] if command.writes and not command.changes_rows else None
    output.unlink(missing_ok=True)
    ended = run_hudictl(command, base, output)
    report = Report(case, mode, ended, [*faults_of(ended), *tree_faults(ended, command.writes, before, tree_of(base))])
    if command.mode is not None and ended.code == 0 and not is_reported(ended):
        if mode in kept_of(case.kind).modes(case.nature):
            report.faults += row_faults("query", rows_in(output), _undamaged(case.table, command))
    elif rows_before is not None and ended.code != 2:
        rows, after = _rows(SNAPSHOT_OFF, base, output)
        report.faults += row_faults(f"after exit {ended.code}", rows, rows_before)
        if rows is None:
            report.faults.append(Fault("unreadable after", f"exit {ended.code}, then {after.code}: {after.out[-300:]}"))
    return report


def run_hudictl(command: Command, base: Path, output: Path) -> Ended:
    """The command on a table."""
    places = {TABLE: str(base), OUTPUT: str(output)}
    return run_forked([*(places.get(argument, argument) for argument in command.arguments), "--json"])


def _rows(command: Command, base: Path, output: Path) -> tuple[pa.Table | None, Ended]:
    output.unlink(missing_ok=True)
    ended = run_hudictl(command, base, output)
    return (rows_in(output) if ended.code == 0 else None), ended


@lru_cache(maxsize=512)
def _undamaged(table: Golden, command: Command) -> pa.Table | None:
    with tempfile.TemporaryDirectory(prefix="hostile-") as scratch:
        return _rows(command, write_copy(table, Path(scratch)), Path(scratch) / "out.parquet")[0]
