"""Reads the reports of a test run: prints the modules that took longest and the sum, and fails when a test failed or
was skipped, or when a part ran nothing.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_LONGEST: Final = 40
"""How many modules are shown with their seconds."""


@dataclass(frozen=True)
class Counts:
    """What one report says. `failures` are the failed tests, as pytest takes them, and the skipped ones; `skipped`
    names these. `seconds` are those of each module's tests, with what they set up; parts run side by side.
    """

    passed: int = 0
    failures: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    seconds: Counter[str] = field(default_factory=Counter)

    @property
    def failed(self) -> int:
        """How many failed or were skipped."""
        return len(self.failures)


def counts(path: str | Path) -> Counts:
    """The tests of a report; all zero when pytest came to write none."""
    if not Path(path).is_file():
        return Counts()
    cases = list(ET.parse(path).getroot().iter("testcase"))
    bad = [[child.tag for child in case if child.tag in ("failure", "error", "skipped")] for case in cases]
    skipped = tuple(
        f"{case.get('classname')}::{case.get('name')}"
        for case, tags in zip(cases, bad, strict=True)
        if "skipped" in tags
    )
    failures = tuple(
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        for case, tags in zip(cases, bad, strict=True)
        if tags
    )
    seconds = Counter[str]()
    for case in cases:
        seconds[case.get("classname", "")] += float(case.get("time", 0))
    return Counts(len(cases) - len(failures), failures, skipped, seconds)


def main(paths: Sequence[str]) -> int:
    """0 when every report holds tests, and all of them passed."""
    found = {path: counts(path) for path in paths}
    for path, part in found.items():
        for name in part.skipped:
            print(f"skipped, which counts as failed: {name}")
        if not part.passed + part.failed:
            print(f"no test was run: {Path(path).stem}")
    seconds = sum((part.seconds for part in found.values()), Counter[str]())
    for name, took in seconds.most_common(_LONGEST):
        print(f"{took:8.1f} s  {name}")
    failed = sum(part.failed for part in found.values())
    print(f"{sum(part.passed for part in found.values())} passed, {failed} failed")
    return 0 if found and not failed and all(part.passed for part in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
