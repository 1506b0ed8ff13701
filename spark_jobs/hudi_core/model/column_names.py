"""Columns found by name as Spark finds them: as it is written, else without regard to upper and lower case.

A writer of Hudi may change the case of a column's name: older files then hold the column by the older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hudi_core.errors import UnsupportedError


def alike(names: Iterable[str], name: str) -> list[str]:
    """Those of `names` that `name` is the name of: the same one, else all that differ from it in case alone."""
    found = [item for item in names if item == name or item.lower() == name.lower()]
    return [name] if name in found else found


def places(names: Sequence[str], requested: Iterable[str], *, path: str) -> list[int]:
    """Where each of `requested` is among `names`, -1 where it is not.

    Raises UnsupportedError naming `path` for one that is there twice but for case, as Spark does.
    """
    exact = {name: at for at, name in enumerate(names)}
    lowered = [name.lower() for name in names]
    known = dict(zip(lowered, range(len(names)), strict=True))
    found = [exact.get(name, known.get(name.lower(), -1)) for name in requested]
    if len(known) < len(exact):
        for at in found:
            if at >= 0 and lowered.count(lowered[at]) > 1:
                check_distinct([name for name in names if name.lower() == lowered[at]], path=path)
    return found


def spelled(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Each of `names` as it is written in `known`; as it is where it is not there, or in several ways."""
    exact, lowered = frozenset(known), dict[str, str]()
    for name in exact:
        lowered[name.lower()] = "" if name.lower() in lowered else name
    return [name if name in exact else lowered.get(name.lower()) or name for name in names]


def check_distinct(names: Iterable[str], *, path: str) -> None:
    """Raises UnsupportedError naming `path` and two of `names` that differ in case alone."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedError(
                f"the columns {other!r} and {name!r} differ in upper and lower case alone",
                path=path,
                remedy="rename one of them with Spark and spark.sql.caseSensitive=true: without that Spark does not "
                "read such a table either",
            )
