"""What the index matrix found of one release, table version and table type, as benchmarks/results/index_matrix.json has
it: with the commit and the machine, as cases are run one by one.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import machine
from tests.interop.index_matrix import FEWER, Cell

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "results" / "index_matrix.json"
_TOO_MANY: Final = "but no row has it"
_CASE: Final = ("hudi", "table_version", "table_type")


def lacking(cells: Iterable[Cell]) -> dict[str, frozenset[str]]:
    """By index, the operations after which it lacks something. A record too many excludes no row."""
    return _found(cells, too_many=False)


def summary(release: str, version: str, kind: str, cells: list[Cell], commit: str) -> dict[str, Any]:
    """The entry of one case. An operation counts as done that was only refused beside secondary and expression
    indexes; `refused` names it as well.
    """
    done = {cell.operation.removesuffix(FEWER) for cell in cells if not cell.refused} - {"nothing"}
    return {
        **dict(zip(_CASE, (release, version, kind), strict=True)),
        "commit": commit,
        "machine": machine(),
        "operations": len(done),
        "refused": [cell.operation for cell in cells if cell.refused and not cell.operation.endswith(FEWER)],
        "lacks": _sorted(lacking(cells)),
        "records_without_rows": _sorted(_found(cells, too_many=True)),
    }


def store(path: Path, entry: Mapping[str, Any]) -> None:
    """Puts the entry in the place of the one of the same case; the others stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        cases = {tuple(item[name] for name in _CASE): item for item in (json.loads(text) if text else [])}
        cases[tuple(entry[name] for name in _CASE)] = dict(entry)
        file.truncate(0)
        file.write(json.dumps([cases[case] for case in sorted(cases)], indent=1) + "\n")


def _found(cells: Iterable[Cell], *, too_many: bool) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for cell in cells:
        for text in cell.differences:
            if (_TOO_MANY in text) is too_many:
                found.setdefault(text.split(" ", 1)[0], set()).add(cell.operation)
    return {index: frozenset(operations) for index, operations in found.items()}


def _sorted(found: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {index: sorted(found[index]) for index in sorted(found)}
