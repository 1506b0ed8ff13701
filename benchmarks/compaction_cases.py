"""The tables that compaction is measured on: which Hudi made them, their codec, their updates and their size.

A case is named `SIZE/HUDI/CODEC/PATTERN:AMOUNT`, such as `4m/0.15.0/gzip/uniform:30`. The amount is a percentage of the
rows, or for `scattered` and `deleted` a number of rows of each file group, about. Its table is made on first use and
kept in the cache.

- `uniform` updates are of random keys, spread over all rows of each base file.
- `recent` updates are of random keys among the newest 2 x AMOUNT % of each file group, whose base file holds every
  other id of one half of the ids, in order: they are at its end. Each of the three upserts writes a sixth of these
  keys, so the logs hold AMOUNT % of the rows, as with `uniform`. Every file group has updates, and a compaction
  rewrites all of them.
- `recent-ours` updates are the same, on base files that this engine's compaction has written, in row groups of its
  size: what each further compaction of a table finds.
- `scattered` updates are of AMOUNT random keys of each file group, and `deleted` rows are as many that are deleted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from benchmarks.measure import run_whole_process
from benchmarks.table_copies import cache

SIZES = {"20k": 20_000, "1m": 1_000_000, "4m": 4_000_000}
"""Rows. 20k is to try the benchmark out."""
HUDI = ("0.15.0", "1.2.0")
CODECS = ("gzip", "zstd")
OURS = "recent-ours"
FEW = ("scattered", "deleted")
"""Patterns whose amount is a number of rows of each file group."""
FEW_ROWS = (("scattered", 20), ("deleted", 100))
PATTERNS = ("uniform", "recent", OURS, *FEW)
UPDATES = tuple(f"{pattern}:{percent}" for pattern in ("uniform", "recent") for percent in (30, 10, 1))
GROUPS = 4
"""File groups of each table."""
MEASURED_SIZES = ("1m", "4m")
ROUNDS = 3
"""Upserts, each of a third of the updates."""
HALVES = 2
"""Runs of ids that the first write puts into file groups of their own, in each partition."""


@dataclass(frozen=True)
class Case:
    """One table. Raises ValueError for what is not to be had."""

    size: str
    hudi: str = "0.15.0"
    codec: str = "gzip"
    pattern: str = "uniform"
    amount: int = 30

    def __post_init__(self) -> None:
        for value, known in (
            (self.size, SIZES),
            (self.hudi, HUDI),
            (self.codec, CODECS),
            (self.pattern, PATTERNS),
            (self.amount, range(1, 1001 if self.pattern in FEW else 51)),
        ):
            if value not in known:
                raise ValueError(f"{value!r} is none of {', '.join(map(str, known))}")

    @classmethod
    def parse(cls, name: str) -> Case:
        """The case of a name."""
        size, hudi, codec, updates = name.split("/")
        return cls(size, hudi, codec, *parse_updates(updates))

    @property
    def name(self) -> str:
        """Of the case in the stored result."""
        return f"{self.size}/{self.hudi}/{self.codec}/{self.pattern}:{self.amount}"

    @property
    def rows(self) -> int:
        """Of the table; updates add none."""
        return SIZES[self.size]

    @property
    def updates(self) -> int:
        """Rows that the upserts write in all, about."""
        return GROUPS * self.amount if self.pattern in FEW else self.rows * self.amount // 100

    @property
    def folder(self) -> Path:
        """Where the table is kept."""
        if self == Case(self.size):
            return cache() / f"compaction-{self.size}"
        return cache() / f"compaction-{self.size}-{self.hudi}-{self.codec}-{self.pattern}-{self.amount}"

    def written(self, turn: int) -> str:
        """The condition on `id` of the rows that an upsert writes."""
        if self.pattern in ("uniform", *FEW):
            return f"abs(hash(id, {turn})) % {self.rows} < {self.updates // ROUNDS}"
        half = self.rows // HALVES
        newest = half * 2 * self.amount // 100
        return f"id % {half} >= {half - newest} AND pmod(hash(id, {turn}), {2 * ROUNDS}) = 0"

    def table(self) -> Path:
        """The table, made on first use."""
        if not self.folder.is_dir():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            # Its JVM outlives it, and would count among what is measured next.
            run_whole_process([sys.executable, "-m", "benchmarks.tables", self.name, str(self.folder)])
        return self.folder


def parse_updates(text: str) -> tuple[str, int]:
    """`recent:1` as pattern and amount."""
    pattern, _, amount = text.partition(":")
    return pattern, int(amount)


def table_of(size: str) -> Path:
    """The table that the other benchmarks use: 30 % of the rows updated at random, gzip, by Hudi 0.15.0."""
    return Case(size).table()


def matrix(
    sizes: Iterable[str] = MEASURED_SIZES,
    hudi: Sequence[str] = HUDI,
    codecs: Sequence[str] = CODECS,
    updates: Sequence[str] = UPDATES,
) -> list[Case]:
    """Every combination."""
    return [
        Case(size, version, codec, *parse_updates(text))
        for size, version, codec, text in product(sizes, hudi, codecs, updates)
    ]


LARGE = (
    Case("4m"),
    Case("4m", codec="zstd"),
    Case("4m", pattern="recent", amount=1),
    Case("4m", pattern=OURS, amount=1),
    Case("4m", hudi="1.2.0"),
)


def default_cases() -> list[Case]:
    """What `make bench` measures: five large tables, and the other combinations with a million rows."""
    few = [Case("1m", hudi, "gzip", pattern, amount) for hudi in HUDI for pattern, amount in FEW_ROWS]
    return [*LARGE, *(case for case in matrix(["1m"]) if replace(case, size="4m") not in LARGE), *few]
