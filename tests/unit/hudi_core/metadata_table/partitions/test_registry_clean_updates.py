"""The records of a clean by partition type, and what is refused."""

from __future__ import annotations

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.partitions import single_files
from hudi_core.metadata_table.records.file_statistics import FileChanges
from tests.support.clean_updates import T, definition, indexed_table, records


def test_partition_types_that_a_clean_does_not_change() -> None:
    assert records({"files", "partition_stats", "record_index", "secondary_index_x"}).keys() == {"files"}


@pytest.mark.parametrize("name", ["unknown", "expr_index_other", "expr_index_odd"])
def test_an_unknown_partition_is_refused(name: str) -> None:
    odd = indexed_table({"expr_index_odd": definition("expr_index_odd", "vector", ("v",))})
    with pytest.raises(UnsupportedError, match=name):
        records({name}, odd)


def test_deletions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of whole files: a file's statistics are all deleted or all left."""
    monkeypatch.setattr(single_files, "MAX_DELETIONS", 5)
    many = FileChanges(deleted={"p": frozenset(f"f{number}-0_0-1-2_{T}.parquet" for number in range(9))})
    found = records({"files", "column_stats", "bloom_filters"}, changes=many)
    assert len(found["column_stats"]) == 4
    assert len(found["bloom_filters"]) == 5
    assert len(dict(found["files"])["p"]["filesystemMetadata"]) == 9
