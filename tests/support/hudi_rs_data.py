"""The test tables of Apache Hudi-rs, each with the SQL script that made it (tests/golden/data/hudi_rs.NOTICE.md says
their origin).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.golden_data import unpacked_once

ARCHIVE = Path(__file__).parents[1] / "golden" / "data" / "hudi_rs.tar.xz"


@dataclass(frozen=True, order=True)
class HudiRsTable:
    """One table, by its path below `tables/`, such as sample_table/cow/v6_empty."""

    name: str

    @property
    def path(self) -> Path:
        """The table's base path in the cache: read it, never write to it."""
        return hudi_rs_root() / "tables" / self.name

    @property
    def script(self) -> str:
        """The SQL that made the table."""
        return (hudi_rs_root() / "tables" / f"{self.name}.sql").read_text()

    @property
    def is_lance(self) -> bool:
        """Whether the base files are in the Lance format, which Hudi writes since 1.2."""
        return "lance" in self.name


def hudi_rs_root() -> Path:
    """The unpacked archive: `tables/` and `core/`."""
    return unpacked_once(ARCHIVE, "hudi-rs")


def hudi_rs_tables() -> list[HudiRsTable]:
    """Every table, sorted by name."""
    root = hudi_rs_root() / "tables"
    return sorted(HudiRsTable(path.relative_to(root).with_suffix("").as_posix()) for path in root.rglob("v*.sql"))
