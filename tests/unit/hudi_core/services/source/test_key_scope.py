"""Whether keys are of the whole table, and whether rows move, by the options of an index."""

from __future__ import annotations

import pytest

from hudi_core.services.source.key_scope import BY_RECORD_INDEX, INDEX_TYPES, WITHIN_PARTITIONS, KeyScope, index_type


@pytest.mark.parametrize(
    ("options", "scope"),
    [
        *(({"hoodie.index.type": name}, KeyScope()) for name in sorted(WITHIN_PARTITIONS - BY_RECORD_INDEX)),
        ({"hoodie.index.type": "RECORD_LEVEL_INDEX"}, KeyScope(in_record_index=True)),
        ({}, KeyScope()),
        ({"hoodie.index.type": "INMEMORY"}, KeyScope()),
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, KeyScope(True, True)),
        ({"hoodie.index.type": "global_simple"}, KeyScope(True, True)),
        ({"hoodie.index.type": "RECORD_INDEX"}, KeyScope(True, False)),
        ({"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"}, KeyScope(True, False)),
        (
            {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"},
            KeyScope(True, False),
        ),
        (
            {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"},
            KeyScope(True, True),
        ),
        (
            {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.bloom.index.update.partition.path": "false"},
            KeyScope(True, True),
        ),
    ],
)
def test_the_index_says_where_a_key_is_looked_for(options: dict[str, str], scope: KeyScope) -> None:
    """The defaults are those of HoodieIndexConfig."""
    assert KeyScope.of(options) == scope


def test_a_type_is_read_in_any_case() -> None:
    assert index_type({"hoodie.index.type": "global_bloom"}) in INDEX_TYPES
    assert index_type({}) == "SIMPLE"
