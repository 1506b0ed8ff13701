"""What is said about a pending plan is a command that this release carries out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.services.stuck.advice import advice
from tests.golden_data import GoldenCase
from tests.unit.hudi_core.services.after import open_context

Golden = Callable[[str, str], GoldenCase]
T = "20261120223342658"


@pytest.mark.parametrize(
    ("version", "kind", "expected"),
    [
        ("6", "compaction", f"hudictl run compaction TABLE --instant {T}"),
        ("6", "log_compaction", f"unschedule TABLE {T}"),
        ("6", "clustering", f"unschedule TABLE {T}"),
        ("8", "compaction", f"unschedule TABLE {T}"),
        ("9", "compaction", f"unschedule TABLE {T}"),
        ("9", "clean", f"hudictl run clean TABLE --instant {T}"),
        ("9", "rollback", f"hudictl run rollback TABLE --instant {T}"),
        ("9", "restore", f"hudictl show TABLE {T}"),
        ("9", "savepoint", f"hudictl savepoint create TABLE --instant {T}"),
        ("9", "indexing", "DROP INDEX"),
        ("9", "write", f"hudictl rollback TABLE --instant {T}"),
    ],
)
def test_advice(golden: Golden, version: str, kind: str, expected: str) -> None:
    said = advice(open_context(golden(version, "mor_basic").table).config, kind, T)
    assert expected in said
    assert ("hudictl run" in said) == expected.startswith("hudictl run")
