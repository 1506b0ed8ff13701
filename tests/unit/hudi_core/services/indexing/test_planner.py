from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError
from tests.unit.hudi_core.services.indexing.test_job import run
from tests.unit.hudi_core.services.indexing.test_resize import RECORD_INDEX, Golden, counts, groups, plan


def test_only_row_level_indexes_have_a_configurable_number_of_file_groups(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    with pytest.raises(ConfigError, match="row-level indexes"):
        plan(table, {"hoodie.metadata.index.bloom.filter.enable": "true", **groups(2)})
    with pytest.raises(ConfigError, match="between 1 and 10000"):
        plan(table, RECORD_INDEX | groups(0))
    assert run(table, plan(table, RECORD_INDEX | groups(5)).instant, groups(5)) == "completed"
    assert counts(table) == {"record-index": 5}, "so many from the start"


def test_a_global_index_does_not_become_partitioned_by_a_resize(golden: Golden) -> None:
    table = golden("9", "mdt_record_index_lookup").table
    with pytest.raises(ConfigError, match="not partitioned"):
        plan(table, {"hoodie.metadata.record.level.index.enable": "true", **groups(2)})
    assert counts(table) == {"record-index": 10}
