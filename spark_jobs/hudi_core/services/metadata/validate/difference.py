"""What a validation found: differences between the metadata table and the table, and what it could not compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

KEPT: Final = 1000
"""How many differences of each partition type are kept; all are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`kind` is the metadata partition (`files`, `record_index`, `secondary_index_<name>` …), `partition` the data
    partition's path.

    `file` is a plain file name, or in row-level indexes the file group's id; None where the difference is of no single
    file. `what` describes the metadata table's record and the data.
    """

    partition_type: str
    partition: str | None
    file: str | None
    what: str

    def to_dict(self) -> dict[str, Any]:
        """Its entry in the document of `hudictl metadata validate --json`."""
        return {"kind": self.partition_type, "partition": self.partition, "file": self.file, "what": self.what}


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A part of a partition type that was not compared, and why."""

    partition_type: str
    why: str


class Findings:
    """Collects differences; memory is bounded by KEPT per partition type."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Difference]] = {}
        self._counts: Counter[str] = Counter()
        self._not_checked: dict[NotChecked, None] = {}

    def add(self, partition_type: str, what: str, *, partition: str | None = None, file: str | None = None) -> None:
        """One difference."""
        self.add_all(partition_type, 1, (Difference(partition_type, partition, file, what),))

    def add_all(self, partition_type: str, count: int, differences: Iterable[Difference]) -> None:
        """Adds `count` differences of a partition type; `differences` is read as far as they are kept."""
        if count:
            self._counts[partition_type] += count
            kept = self._kept.setdefault(partition_type, [])
            for difference in differences:
                if len(kept) >= KEPT:
                    break
                kept.append(difference)

    def not_checked(self, partition_type: str, why: str) -> None:
        """Says that something was not compared, once for each reason."""
        self._not_checked.setdefault(NotChecked(partition_type, why))

    @property
    def count(self) -> int:
        """All differences, kept or not."""
        return sum(self._counts.values())

    def report(self, partition_types: Iterable[str], partitions: int, files: int, rows: int) -> ValidationReport:
        """Everything that was found; the arguments say what was looked at."""
        differences = tuple(item for partition_type in sorted(self._kept) for item in self._kept[partition_type])
        return ValidationReport(
            differences,
            dict(sorted(self._counts.items())),
            tuple(self._not_checked),
            tuple(sorted(partition_types)),
            partitions,
            files,
            rows,
        )


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """`differences` are up to KEPT of each partition type, `counts` all of them. `kinds` were compared, over
    `partitions`, `files` and `rows`.
    """

    differences: tuple[Difference, ...]
    counts: dict[str, int]
    not_checked: tuple[NotChecked, ...]
    partition_types: tuple[str, ...]
    partitions: int
    files: int
    rows: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.counts

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl metadata validate --json`."""
        return {
            "differences": [item.to_dict() for item in self.differences],
            "counts": dict(self.counts),
            "not_checked": [{"kind": item.partition_type, "why": item.why} for item in self.not_checked],
            "kinds": list(self.partition_types),
            "partitions": self.partitions,
            "files": self.files,
            "rows": self.rows,
        }
