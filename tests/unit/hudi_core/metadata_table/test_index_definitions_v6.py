"""Hudi 1.x defines the column statistics of tables of version 6, too, as it does later; 0.15 knows no definitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.services.metadata.maintain import create_metadata, drop_metadata
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.unit.hudi_core.services.indexing.test_job import OWNER, differences

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize(
    ("label", "case"),
    [("6-by-1.2.0", "mor_basic"), ("6-by-1.2.0", "cow_basic"), ("8", "mor_basic"), ("6", "mor_basic")],
)
def test_what_is_begun_anew_is_defined_as_real_hudi_would(golden: Golden, label: str, case: str) -> None:
    table = Table(golden(label, case).table)
    real = load_index_definitions(table.storage, table.config)
    drop_metadata(context_of(table.path), ["files"], OWNER)
    assert load_index_definitions(table.storage, table.config) == {}
    create_metadata(context_of(table.path, {}), ["column_stats"], LocalEngine(1), OWNER)
    defined = load_index_definitions(table.storage, table.config)
    assert defined.keys() == ({"column_stats"} if label != "6" else set())
    if "column_stats" in real:  # of more columns: ours has all of them in version 6, as 0.15 has
        ours, theirs = defined["column_stats"], real["column_stats"]
        assert (ours.type, ours.function, ours.options, ours.version) == (
            theirs.type,
            theirs.function,
            theirs.options,
            theirs.version,
        )
        assert set(ours.source_fields) >= set(theirs.source_fields)
    assert differences(table.path) == []
