"""What one mutation did to a file, and whether a query may answer otherwise after it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Nature(Enum):
    """Of a mutation.

    `DAMAGE` is what no writer leaves and a reader can find out: a file that is cut, emptied or grown, a length, count
    or checksum that is wrong, a schema that is none, something else than a file. `EDIT` is a file as a writer might
    have written it, with other content; bytes changed where the format has no checksum are edits, too, since no
    reader can detect them.
    """

    DAMAGE = "damage"
    EDIT = "edit"


@dataclass(frozen=True)
class Changed:
    """New content of a file."""

    data: bytes
    nature: Nature
    what: str


def damage(data: bytes, what: str) -> Changed:
    """What a reader can find out."""
    return Changed(data, Nature.DAMAGE, what)


def edit(data: bytes, what: str) -> Changed:
    """What a writer might have written."""
    return Changed(data, Nature.EDIT, what)


class NotApplicableError(Exception):
    """The file has nothing that this mutation changes."""
