from __future__ import annotations

import pytest

from hudi_core.config.write_config import BATCH_ROWS, BLOOM_ENTRIES, WriteConfig
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError


def test_what_tasks_get_is_what_was_read() -> None:
    config = WriteConfig.of({BLOOM_ENTRIES.name: "123", "hoodie.payload.delete.field": "gone"})
    assert (config.bloom_entries, config.delete_field, config.delete_marker) == (123, "gone", None)
    assert from_text(WriteConfig, to_text(config)) == config


@pytest.mark.parametrize("key", [BLOOM_ENTRIES, BATCH_ROWS], ids=lambda key: key.name)
def test_a_value_that_is_none_is_refused_by_its_key(key: object) -> None:
    with pytest.raises(ConfigError, match=key.name):  # type: ignore[attr-defined]
        WriteConfig.of({key.name: "many"})  # type: ignore[attr-defined]
