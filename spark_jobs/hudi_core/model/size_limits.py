"""How large a file of each kind, or a part of one that is held in memory, may be: one table, with one option each.

A file is refused by its size before it is read. A part is refused by the size that its file declares, before memory is
taken for it. The defaults are far above what Hudi writes (docs/use/security.md); an option raises each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Final, NamedTuple

from hudi_core.errors import ConfigError, SizeLimitError
from hudi_core.frozen import dataclass

PREFIX: Final = "airflow_hudi.limit."
MAX_BYTES: Final = 2**53
_MIB: Final = 1 << 20


class _Entry(NamedTuple):
    key: str
    default: int
    what: str


class Limit(_Entry, Enum):
    """A kind of file, or of part of one: its name in the option, the default in bytes, and what it is called."""

    PROPERTIES = "properties", 16 * _MIB, "the properties of a table"
    TIMELINE = "timeline", 512 * _MIB, "a file of the timeline, or of a decision"
    ARCHIVE = "archive", 512 * _MIB, "a block of a file of the archived timeline in table version 6"
    MANIFEST = "manifest", 16 * _MIB, "a manifest of the archived timeline"
    CLAIM = "claim", _MIB, "a claim, a heartbeat or a lock"
    INDEX_DEFINITIONS = "index_definitions", 16 * _MIB, "the definitions of indexes"
    SCHEMA_HISTORY = "schema_history", 256 * _MIB, "the schemas that a table had"
    MARKERS = "markers", 256 * _MIB, "a list of markers"
    OTHER = "other", 512 * _MIB, "any other file that is read as a whole"
    LOG_BLOCK = "log_block", 512 * _MIB, "a log block that is read as a whole, or a record of a log block"
    HFILE_BLOCK = "hfile_block", 256 * _MIB, "a block of an HFile, decompressed"
    PARQUET_FOOTER = "parquet_footer", 64 * _MIB, "the footer of a Parquet file"
    PARQUET_CHUNK = "parquet_chunk", 2048 * _MIB, "a column of a Parquet row group, as it is stored"
    PARQUET_PAGES = (
        "parquet_pages",
        512 * _MIB,
        "the largest decompressed page of each column of a Parquet row group, added up",
    )
    ORC_STRIPE = "orc_stripe", 1024 * _MIB, "an ORC stripe, or 8 bytes for each value if that is more"

    @property
    def option(self) -> str:
        return f"{PREFIX}{self.key}.bytes"


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The limits of one table's storage. Those that are not in `given` are the defaults."""

    given: Mapping[Limit, int] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, str]) -> SizeLimits:
        """Returns the limits that options set. Raises ConfigError for a value that is no number of bytes."""
        return SizeLimits({kind: _bytes(kind.option, options[kind.option]) for kind in Limit if kind.option in options})

    def most(self, kind: Limit) -> int:
        return self.given.get(kind, kind.default)

    def check(self, kind: Limit, size: int, path: str, *, what: str = "the file") -> None:
        """Raises SizeLimitError naming `path`, the size and the option where `what` has more bytes than allowed."""
        most = self.most(kind)
        if size > most:
            message = f"{what} has {size} bytes, more than the {most} that are read of this kind: {kind.what}"
            remedy = f"if a writer of the table made it so, raise {kind.option}; else restore the file from a copy"
            raise SizeLimitError(message, path=path, remedy=remedy)

    def check_file(self, path: str, size: int) -> None:
        """Checks a file that is to be read as a whole; its path says of which kind it is."""
        self.check(limit_of(path), size, path)


NO_OPTIONS: Final = SizeLimits()


def limit_options(options: Mapping[str, str]) -> dict[str, str]:
    """Returns those of `options` that set limits. They go with the options of the storage, and so to every task."""
    return {name: value for name, value in options.items() if name.startswith(PREFIX)}


def without_limits(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the `options` that set no limits: what a library of a storage gets."""
    return {name: value for name, value in options.items() if not name.startswith(PREFIX)}


def limit_of(path: str) -> Limit:
    """Returns the kind of a file that is read as a whole, by its path below the data table's base path."""
    folder, _, name = path.rpartition("/")
    parts = folder.split("/")
    if ".hoodie" not in parts:
        return Limit.CLAIM if name.endswith(("lock", "lock.json")) else Limit.OTHER
    below = parts[len(parts) - parts[::-1].index(".hoodie") :]
    if not below:
        return _of_control_file(name)
    if below[0] in _BY_FOLDER:
        return _BY_FOLDER[below[0]]
    if below[0] == ".airflow_hudi":
        return _of_own_file(below[1:], name)
    if name.startswith(("manifest_", "_version_")):
        return Limit.MANIFEST
    if below[0] == "metadata":
        return Limit.OTHER
    return Limit.TIMELINE


def _of_control_file(name: str) -> Limit:
    if name.startswith("hoodie.properties"):
        return Limit.PROPERTIES
    return Limit.CLAIM if name.startswith("lock") else Limit.TIMELINE


def _of_own_file(below: list[str], name: str) -> Limit:
    """Returns the limit of a file that our processes write for each other: claims, plans, results and others."""
    if below[:1] in (["metadata"], ["results"]):
        return Limit.OTHER
    return Limit.TIMELINE if name.endswith((".decision", ".plan")) else Limit.CLAIM


_BY_FOLDER: Final = {
    ".heartbeat": Limit.CLAIM,
    ".locks": Limit.CLAIM,
    ".index_defs": Limit.INDEX_DEFINITIONS,
    ".schema": Limit.SCHEMA_HISTORY,
    ".temp": Limit.MARKERS,
}


def _bytes(name: str, text: str) -> int:
    try:
        value = int(text.strip())
    except ValueError as error:
        remedy = "set it to a number of bytes, or leave it out"
        raise ConfigError(f"{name} is {text!r}: not a whole number", remedy=remedy) from error
    if not 1 <= value <= MAX_BYTES:
        remedy = f"set it to a number of bytes up to {MAX_BYTES}, or leave it out"
        raise ConfigError(f"{name} is {text!r}: not between 1 and {MAX_BYTES}", remedy=remedy)
    return value
