"""Coverage of hudi_core and hudi_health by SlipCover: `pytest -p tests.support.coverage_plugin`, with COVERAGE_JSON
naming the report.

coverage.py's tracer doubled the time of the unit tests on Python 3.10 and 3.11; SlipCover adds a third to it, and a
tenth with `CoreCover`. It instruments modules as they are imported, so this plugin is imported before any of them.
`python -m tests.support.coverage_plugin report.json PERCENT` prints the least covered modules and the sum, and fails
below that percentage of lines and branches.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

import pytest
from slipcover import FileMatcher, Slipcover
from slipcover.importer import SlipcoverMetaPathFinder

MEASURED: Final = [Path(__file__).parents[2] / "spark_jobs" / name for name in ("hudi_core", "hudi_health")]
EXCLUDED: Final = ["if TYPE_CHECKING:", r"^\s*\.\.\.$"]
_SHOWN: Final = 10
_CACHED: Final = type(functools.cache(len))


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


class CoreCover(Slipcover):  # type: ignore[misc]
    """SlipCover with a shorter way to the functions that have run often, whose probes it takes out."""

    def deinstrument_seen(self) -> None:
        """Looks for functions in the modules of the files whose code has run, and behind properties and decorators.

        SlipCover looks through every module and all that the frames of every thread hold, which takes a twentieth of
        the time of the tests, and leaves properties and decorated functions as they are.
        """
        with self.lock:
            newly_seen = self._get_newly_seen()
            for file, seen in newly_seen.items():
                for code in list(self.instrumented[file]):
                    self.deinstrument(code, seen)
                self.all_seen[file].update(seen)
            for module in self.modules:
                if module.__file__ in newly_seen:
                    for function in _functions(vars(module), module.__name__):
                        function.__code__ = self.replace_map.get(function.__code__, function.__code__)
            self.replace_map.clear()


def _functions(names: Mapping[str, object], module: str) -> Iterator[FunctionType]:
    """The functions that a module and its classes define, below decorators and in properties as well."""
    for member in list(names.values()):
        if isinstance(member, type):
            if member.__module__ == module:
                yield from _functions(vars(member), module)
            continue
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, functools.cached_property):
            member = member.func
        elif isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        while isinstance(member, (FunctionType, _CACHED)):
            if isinstance(member, FunctionType):
                yield member
            member = vars(member).get("__wrapped__")


def start() -> Slipcover:
    """From here on, modules of the packages are instrumented when they are imported."""
    if early := [name for name in sys.modules if _is_measured(name)]:
        raise RuntimeError(f"{early[0]} is imported already, and would count as not covered")
    measured = CoreCover(branch=True, source=[*map(str, MEASURED)], exclude_also=EXCLUDED)
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
