"""Reads the reports of a test run: prints the sum, and fails when a test failed or was skipped, or when a part ran nothing."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence


def main(paths: Sequence[str]) -> int:
    """0 when every report holds tests, and all of them passed."""
    passed = failed = 0
    empty = False
    for path in paths:
        cases = list(ET.parse(path).getroot().iter("testcase"))
        empty = empty or not cases
        for case in cases:
            bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            passed += not bad
            failed += bool(bad)
            if "skipped" in bad:
                print(f"skipped, which counts as failed: {case.get('classname')}::{case.get('name')}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or empty or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
