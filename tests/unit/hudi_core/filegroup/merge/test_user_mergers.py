from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import ConfigError
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.merge.user_mergers import apply_merger, merger_named, register_merger
from tests.support.reference_merge import Row, entry, record
from tests.unit.hudi_core.filegroup.merge.test_log_merge import MARKS, row, run

Result = tuple[pa.RecordBatch, Any]


def sums(older: pa.RecordBatch, newer: pa.RecordBatch) -> Result:
    """Adds up `wide`, and deletes what comes to a hundred or more."""
    total = pc.add(older.column("wide"), newer.column("wide"))
    merged = newer.set_column(newer.schema.get_field_index("wide"), newer.schema.field("wide"), total)
    return merged, pc.greater_equal(total, 100).to_numpy(zero_copy_only=False)


def test_rows_are_merged_in_the_logs_and_with_the_base() -> None:
    register_merger("tests.sums", sums)
    register_merger("tests.sums", sums)
    policy = MergePolicy(("key",), ("ordering",), Rules.FUNCTION, delete_marks=MARKS, function="tests.sums")

    def of(key: str, wide: int) -> Row:
        return {**row(key, 1, 2), "wide": wide}

    base = [of("a", 10), of("b", 90), of("c", 5), of("e", 7)]
    logs = [
        [
            record("a", 1, of("a", 1)),
            record("b", 1, of("b", 20)),
            record("d", 1, of("d", 3)),
            record("c", 1, of("c", 1)),
        ],
        [record("a", 1, of("a", 2)), record("d", 1, of("d", 4)), record("f", 1, of("f", 60))],
        [entry("c", 9)],
        [record("f", 1, of("f", 60)), record("a", 1, of("a", 4))],
    ]
    found, counts = run(policy, logs, base)
    assert {item["key"]: item["wide"] for item in found} == {"a": 17, "d": 7, "e": 7}
    assert (counts.updated, counts.deleted, counts.inserted, counts.missed_deletes) == (1, 2, 1, 1)


def test_unknown_and_taken_names() -> None:
    with pytest.raises(ConfigError, match=r"'tests\.missing'.*register_merger"):
        merger_named("tests.missing")
    register_merger("tests.taken", sums)
    with pytest.raises(ConfigError, match="registered already"):
        register_merger("tests.taken", lambda older, newer: (newer, None))
    with pytest.raises(ConfigError, match="no name"):
        register_merger("no name", sums)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda older: older, "record batch of 2 rows"),
        (lambda older: (older.slice(1), None), "record batch of 2 rows"),
        (lambda older: (older.rename_columns(["other"]), None), "record batch of 2 rows"),
        (lambda older: (older, np.array([True])), "not 2 booleans"),
        (lambda older: (older, np.array([1, 0])), "not 2 booleans"),
    ],
)
def test_what_a_function_returns_is_checked(result: Any, words: str) -> None:
    name = f"tests.bad{id(result)}"
    register_merger(name, lambda older, newer: result(older))  # type: ignore[arg-type]
    batch = pa.record_batch({"a": [1, 2]})
    with pytest.raises(ConfigError, match=words):
        apply_merger(name, batch, batch)
