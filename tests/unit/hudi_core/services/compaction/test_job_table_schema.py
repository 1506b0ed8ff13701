"""A table whose commits record no schema is compacted by the schema that readers take from its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import DROP_PARTITION, TableConfig
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.model.names import WriteToken
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import (
    SCHEMA_KEY,
    decode_commit,
    encode_commit,
    encode_commit_avro,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job import commit_of, compact, pending_instant

KEY = "_hoodie_record_key"
Golden = Callable[[str, str], GoldenCase]


def remove_recorded_schemas(table: Path) -> None:
    """Removes the schema from every commit of the active timeline and from the table's properties."""
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    encode = encode_commit if config.layout_version == 1 else encode_commit_avro
    for instant in active.load().commits().instants:
        metadata = active.read_commit(instant)
        extra = {key: value for key, value in metadata.extra_metadata.items() if key != SCHEMA_KEY}
        path = active.path_of(instant)
        storage.write(path, encode(replace(metadata, extra_metadata=extra)))
        assert decode_commit(storage.read(path), path=path).schema_text is None
    lines = storage.read(config.path).decode().splitlines(keepends=True)
    kept = (line for line in lines if not line.startswith("hoodie.table.create.schema"))
    storage.write(config.path, "".join(kept).encode())


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize(
    "case",
    tiered(
        ["mor_compaction_requested", "schema_evolution_mor_compaction_requested"],
        ["schema_evolution_mor_compaction_requested"],
    ),
)
def test_a_table_that_is_read_is_compacted(golden: Golden, version: str, case: str) -> None:
    table = golden(version, case).table
    remove_recorded_schemas(table)
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
    compact(table)
    assert_compacted(table, instant, rows, pending)
    assert commit_of(table, instant).schema_text is not None


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_new_files_lack_a_dropped_column_that_the_schema_names(golden: Golden, version: str) -> None:
    """Hudi's row writer leaves it there, with no values of it in the files."""
    table = golden(version, "mor_compaction_requested").table
    storage = LocalStorage(table)
    properties = TableConfig.load(storage).path
    lines = storage.read(properties).decode().splitlines()
    kept = [line for line in lines if not line.startswith(DROP_PARTITION.name)]
    storage.write(properties, "\n".join([*kept, f"{DROP_PARTITION.name}=true", ""]).encode())
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
    compact(table)
    assert_compacted(table, instant, rows, pending)
    metadata = commit_of(table, instant)
    assert '"dt"' in (metadata.schema_text or "")
    for stat in metadata.write_stats():
        assert "dt" not in pq.read_schema(table / stat.path).names


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_statistics_are_of_the_columns_that_the_files_have(golden: Golden, version: str) -> None:
    table = golden(version, "mdt_all_mor").table
    storage = LocalStorage(table)
    columns, statistics = _statistics_columns(storage), _key_statistics(storage)
    remove_recorded_schemas(table)
    assert _statistics_columns(storage) == columns
    assert _key_statistics(storage).equals(statistics)


def _statistics_columns(storage: LocalStorage) -> tuple[str, ...]:
    config, zone = TableConfig.load(storage), {"spark.sql.session.timeZone": "UTC"}
    publisher = MetadataPublisher(storage, config, WriteToken(0, 1, 0), InstantClock("UTC", 0), zone)
    requirements = publisher.commit_requirements()
    assert requirements is not None
    return tuple(requirements.columns)


def _key_statistics(storage: LocalStorage) -> pa.Table:
    config = TableConfig.load(storage)
    metadata = MetadataTable(storage, config, ActiveTimeline(storage, config).load())
    return metadata.column_stats([KEY])[KEY]
