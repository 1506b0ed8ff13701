"""A record index begins by reading the columns that make the record key: the others may be unreadable. What is built
and cannot be used has a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import update_properties
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import UnsupportedError
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.initialization import Initializations, index_warnings
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.transaction.owner import Owner
from tests.support.bootstrapped_tables import bootstrap_one
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.metadata_records import Table
from tests.support.table_files import contents
from tests.support.tiers import tiered

OWNER = Owner.current("test")
KEY = "_hoodie_record_key"


def spoil(path: Path) -> int:
    """Overwrites the pages of every other column of a base file; returns how many columns."""
    spoilt = 0
    metadata = pq.read_metadata(path)
    content = bytearray(path.read_bytes())
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            if chunk.path_in_schema != KEY:
                start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
                content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
                spoilt += 1
    path.write_bytes(content)
    return spoilt


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_nothing_else_of_a_base_file_is_read(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    table = Table(golden(version, "cow_basic").table)
    create_metadata(context_of(table.path, {}), ["record_index"], LocalEngine(1), OWNER, 1)
    before = {key: (place.partition, place.file_id) for key, place in table.live()["record_index"].items()}
    drop_metadata(context_of(table.path, {}), ["record_index"], OWNER)
    for path in table.path.rglob("*.parquet"):
        assert spoil(path) > 5
        with pytest.raises((OSError, pa.ArrowException)):
            pq.read_table(path, partitioning=None)
    create_metadata(context_of(table.path, {}), ["record_index"], LocalEngine(1), OWNER, 1)
    after = {key: (place.partition, place.file_id) for key, place in table.live()["record_index"].items()}
    assert after == before != {}


def test_a_secondary_index_without_a_record_index_is_built_with_a_warning(
    golden: Callable[[str, str], GoldenCase], caplog: pytest.LogCaptureFixture
) -> None:
    table = golden("9", "mdt_all_mor").table
    assert index_warnings(context_of(table).config, ["secondary_index_idx_note"]) == []
    assert hudictl("metadata", "drop", table, "--partition", "record_index").code == 0
    config = context_of(table).config
    (warning,) = index_warnings(config, ["column_stats", "secondary_index_idx_note"])
    assert index_warnings(config, ["secondary_index_idx_note", "record_index"]) == []
    assert index_warnings(config, ["column_stats"]) == []
    named = ("--option", "hoodie.metadata.index.secondary.column=note")
    enabled = ("--option", "hoodie.metadata.index.secondary.enable=true")
    done = hudictl("schedule", "indexing", table, *enabled, *named, "--json")
    (said,) = done.document["plan"]["warnings"]
    assert said == warning.replace("secondary_index_idx_note", "secondary_index_note")
    assert [record.message for record in caplog.records if "no query can use" in record.message] == [said]


def test_version_6_gets_no_statistics_of_partitions(golden: Callable[[str, str], GoldenCase]) -> None:
    """Hudi 0.15 writes on without them, and behind it queries of 1.x lose rows by those that are there."""
    table = golden("6", "mor_basic").table
    before = contents(table)
    create = ("metadata", "create", table, "--partition", "column_stats", "--partition", "partition_stats")
    switches = [f"hoodie.metadata.index.{name}.stats.enable=true" for name in ("column", "partition")]
    schedule = ("schedule", "indexing", table, *(word for item in switches for word in ("--option", item)))
    for command in (create, schedule):
        refusal = hudictl(*command)
        assert (refusal.code, "needs table version 8" in refusal.err) == (2, True), refusal.err
        assert contents(table) == before


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("name", ["column_stats", "bloom_filters", "record_index"])
def test_no_index_is_started_on_a_table_with_files_of_a_bootstrap(
    golden: Callable[[str, str], GoldenCase], version: str, name: str
) -> None:
    """Their rows are in another table's files. A list of the files alone is right."""
    table = Table(golden(version, "mor_basic").table)
    skeleton = bootstrap_one(table.path)
    before = contents(table.path)
    with pytest.raises(UnsupportedError, match="bootstrap") as caught:
        create_metadata(context_of(table.path, {}), [name], LocalEngine(1), OWNER, 1)
    assert caught.value.path == skeleton
    assert contents(table.path) == before
    update_properties(table.storage, {"hoodie.table.metadata.partitions": f"files,{name}"})
    listed = context_of(table.path, {})
    Initializations(listed, listed.workers(LocalEngine(1), 1)).check([name])
    update_properties(table.storage, {"hoodie.table.metadata.partitions": ""})
    config = create_metadata(context_of(table.path, {}), ["files"], LocalEngine(1), OWNER, 1)
    assert config.metadata_partitions == {"files"}
    done = hudictl("schedule", "indexing", table.path, "--option", "hoodie.metadata.index.column.stats.enable=true")
    assert done.code == 2
    assert "bootstrap" in done.err
