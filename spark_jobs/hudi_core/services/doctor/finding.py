"""What the doctor says: findings. Ages are seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

Severity = Literal["error", "warning", "info"]
"""error: rows are wrong or will be lost; warning: something is blocked or may fail; info: no action is needed now."""

KEPT: Final = 100
"""How many differences of one sort are kept; all are counted."""
_SHOWN: Final = 5

T = TypeVar("T")


def duration(seconds: float) -> str:
    """An age for people: seconds, minutes, hours or days, whichever is not too small."""
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its rule, what was seen, what to do. `age_seconds` is that of the instant or lock."""

    rule: str
    severity: Severity
    what: str
    fix: str
    instant: str | None = None
    path: str | None = None
    age_seconds: float | None = None
    owner: str | None = None
    blocks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        age = None if self.age_seconds is None else round(self.age_seconds, 3)
        return asdict(self) | {"blocks": list(self.blocks), "age_seconds": age}


@dataclass(slots=True)
class Counted(Generic[T]):
    """The first KEPT items, and how many there are."""

    first: list[T] = field(default_factory=list)
    count: int = 0

    def add(self, *items: T) -> None:
        """Counts the items, and keeps those that there is room for."""
        self.count += len(items)
        self.first += items[: KEPT - len(self.first)]

    def named(self, kind: str = "file") -> str:
        """The count of files, or others of a `kind`, for people, and the first by name."""
        more = "" if self.count <= _SHOWN else f" and {self.count - _SHOWN} more"
        shown = ", ".join(map(str, self.first[:_SHOWN]))
        return f"{self.count} {kind}{'' if self.count == 1 else 's'} ({shown}{more})"


def each_of(counted: Counted[Finding], rest: str, fix: str) -> Iterator[Finding]:
    """The findings that are kept, and one more that says how many of `rest` there are."""
    yield from counted.first
    if counted.count > KEPT:
        more = f"{counted.count - KEPT} {rest}"
        yield Finding(counted.first[0].rule, counted.first[0].severity, more, fix)
