"""What the doctor says about a table: findings, and the options that its writers should have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

Severity = Literal["error", "warning", "info"]
"""error: rows are wrong or will be lost; warning: something is blocked or may fail; info: no action is needed now."""


_SHOWN: Final = 5


def duration(seconds: float) -> str:
    """An age for people: seconds, minutes, hours or days, whichever is not too small."""
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def named_files(paths: Sequence[str], count: int) -> str:
    """`count` files for people, the first of `paths` by name."""
    more = "" if count <= _SHOWN else f" and {count - _SHOWN} more"
    return f"{count} file{'' if count == 1 else 's'} ({', '.join(paths[:_SHOWN])}{more})"


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
        """As a JSON object."""
        age = None if self.age_seconds is None else round(self.age_seconds, 3)
        return asdict(self) | {"blocks": list(self.blocks), "age_seconds": age}


@dataclass(frozen=True, slots=True)
class WriterOption:
    """An option that every writer should have: `value` to set, `now` as this run or the table's properties have it."""

    name: str
    value: str
    now: str | None
    why: str
