"""Coverage of hudi_core and hudi_health by SlipCover: `pytest -p tests.support.coverage_plugin`, with COVERAGE_JSON
naming the report.

coverage.py's tracer doubled the time of the unit tests on Python 3.10 and 3.11; SlipCover adds a third to it
(docs/internals/testing.md). It instruments modules as they are imported, so this plugin is imported before any of them.
`python -m tests.support.coverage_plugin report.json PERCENT` prints the least covered modules and the sum, and fails
below that percentage of lines and branches.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from slipcover import FileMatcher, Slipcover
from slipcover.importer import SlipcoverMetaPathFinder

MEASURED: Final = [Path(__file__).parents[2] / "spark_jobs" / name for name in ("hudi_core", "hudi_health")]
EXCLUDED: Final = ["if TYPE_CHECKING:", r"^\s*\.\.\.$"]
_SHOWN: Final = 10


class CoreFinder(SlipcoverMetaPathFinder):  # type: ignore[misc]
    """SlipCover's finder, for these packages only: it would hide packages of tests from pytest."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for every other package: the next finder is asked."""
        if not _is_measured(fullname):
            return None
        found: ModuleSpec | None = super().find_spec(fullname, path, target)
        return found


def start() -> Slipcover:
    """From here on, modules of the packages are instrumented when they are imported."""
    if early := [name for name in sys.modules if _is_measured(name)]:
        raise RuntimeError(f"{early[0]} is imported already, and would count as not covered")
    measured = Slipcover(branch=True, source=[*map(str, MEASURED)], exclude_also=EXCLUDED)
    sys.meta_path.insert(0, CoreFinder(measured, FileMatcher(sources=MEASURED)))
    return measured


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before conftest.py, which imports hudi_core. Code that tests run in other processes is not counted."""
    measured = start()
    report = Path(os.environ["COVERAGE_JSON"])
    early_config.add_cleanup(lambda: report.write_text(json.dumps(measured.get_coverage())) and None)


def _is_measured(module: str) -> bool:
    return module.partition(".")[0] in {package.name for package in MEASURED}


def main(report: str, least: str) -> int:
    """0 when the covered lines and branches are at least that percentage."""
    found = json.loads(Path(report).read_text())
    files = {name: found["files"][name]["summary"] for name in found["files"]}
    worst = sorted(files, key=lambda name: files[name]["percent_covered"])[:_SHOWN]
    for name in worst:
        print(f"{files[name]['percent_covered']:6.1f} %  {name}")
    covered = float(found["summary"]["percent_covered"])
    print(f"{covered:6.2f} %  of lines and branches of hudi_core and hudi_health; the least is {least} %")
    return 0 if covered >= float(least) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
