from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.row_filter import RowFilter, of_commit_times, of_predicate

BATCH = pa.record_batch(
    [pa.array(["001", "002", None, "003"]), pa.array([1, 2, 3, None])], ["_hoodie_commit_time", "n"]
)


def test_null_in_the_mask_drops_the_row() -> None:
    rows = RowFilter(frozenset({"n"}), lambda batch: pa.array([True, None, False, True])).apply(BATCH)
    assert rows["_hoodie_commit_time"].to_pylist() == ["001", "003"]


def test_commit_times() -> None:
    keeps = of_commit_times(frozenset({"003", "001"}))
    assert keeps.columns == {"_hoodie_commit_time"}
    assert keeps.apply(BATCH)["_hoodie_commit_time"].to_pylist() == ["001", "003"]
    assert of_commit_times(frozenset()).apply(BATCH).num_rows == 0


def test_predicate() -> None:
    predicate = {"op": ">", "left": {"column": ["N"]}, "right": {"literal": "integer", "value": "1"}}
    keeps = of_predicate(predicate, BATCH.schema)
    assert keeps.columns == {"n"}, "spelled as in the schema"
    assert keeps.apply(BATCH)["n"].to_pylist() == [2, 3]
    with pytest.raises(ConfigError, match="other"):
        of_predicate({**predicate, "left": {"column": ["other"]}}, BATCH.schema)
