from __future__ import annotations

import pytest

from hudi_core.config.options import KEYS, check_options
from hudi_core.config.transaction_config import HeartbeatConfig
from hudi_core.config.write_config import WriteConfig
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError


def test_defaults_are_those_of_hudi() -> None:
    write = WriteConfig.of({})
    assert (write.bloom_entries, write.bloom_error_rate, write.bloom_max_entries) == (60_000, 1e-9, 100_000)
    assert (write.parquet_codec, write.row_group_bytes) == (None, 120 * 1024 * 1024)
    assert HeartbeatConfig.of({}) == HeartbeatConfig(60_000, 2)
    check_options({})


def test_options_are_read_and_cross_as_json() -> None:
    write = WriteConfig.of(
        {
            "hoodie.parquet.compression.codec": "zstd",
            "airflow_hudi.memory.bytes": str(1 << 22),
            "hoodie.payload.delete.field": "op",
        }
    )
    assert (write.parquet_codec, write.memory_bytes, write.delete_field) == ("ZSTD", 1 << 22, "op")
    assert from_text(WriteConfig, to_text(write)) == write


@pytest.mark.parametrize(
    "options",
    [
        {"airflow_hudi.memory.byte": "1"},
        {"airflow_hudi.memory.bytes": "1k"},
        {"hoodie.index.bloom.fpp": "1"},
        {"hoodie.parquet.compression.codec": "RAR"},
        {"hoodie.client.heartbeat.interval_in_ms": "0"},
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check_options(options)
    assert next(iter(options)) in str(caught.value)


def test_options_of_hudi_that_this_release_has_no_use_for_pass() -> None:
    check_options({"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS"})


def test_every_option_is_documented_once() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)
    assert all(key.doc for key in KEYS)
