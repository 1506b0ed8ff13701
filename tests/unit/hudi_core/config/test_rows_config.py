from __future__ import annotations

import pytest

from hudi_core.config.rows_config import BATCH_ROWS, BLOOM_ENTRIES, WriteConfig
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError


def test_what_tasks_get_is_what_was_read() -> None:
    config = WriteConfig.of({BLOOM_ENTRIES.name: "123", "hoodie.parquet.compression.codec": "gzip"})
    assert (config.bloom_entries, config.parquet_codec) == (123, "GZIP")
    assert from_text(WriteConfig, to_text(config)) == config


@pytest.mark.parametrize("key", [BLOOM_ENTRIES, BATCH_ROWS], ids=lambda key: key.name)
def test_a_value_that_is_none_is_refused_by_its_key(key: object) -> None:
    with pytest.raises(ConfigError, match=key.name):  # type: ignore[attr-defined]
        WriteConfig.of({key.name: "many"})  # type: ignore[attr-defined]


def test_defaults_are_those_of_hudi() -> None:
    write = WriteConfig.of({})
    assert (write.bloom_entries, write.bloom_error_rate, write.bloom_max_entries) == (60_000, 1e-9, 100_000)
    assert (write.parquet_codec, write.row_group_bytes) == (None, 120 * 1024 * 1024)


def test_options_are_read_and_cross_as_json() -> None:
    write = WriteConfig.of(
        {
            "hoodie.parquet.compression.codec": "zstd",
            "airflow_hudi.memory.bytes": str(1 << 22),
        }
    )
    assert (write.parquet_codec, write.memory_bytes) == ("ZSTD", 1 << 22)
    assert from_text(WriteConfig, to_text(write)) == write


@pytest.mark.parametrize("gigabytes", [8, 1 << 20])
def test_what_is_sorted_at_once_fits_into_a_column_of_texts(gigabytes: int) -> None:
    """An Arrow array of texts has 2 GiB at most: Table.take fails on more, however they are in chunks."""
    config = WriteConfig.of({"airflow_hudi.memory.bytes": str(gigabytes << 30)})
    assert max(config.sorted_bytes, config.merged_bytes) <= 1 << 29


def test_a_codec_that_spark_cannot_read_is_refused() -> None:
    """Spark 3.5 and 4 have no class for Brotli."""
    with pytest.raises(ConfigError, match="ZSTD"):
        WriteConfig.of({"hoodie.parquet.compression.codec": "brotli"})
