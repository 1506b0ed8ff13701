"""Which partition types a commit updates, and with what: statistics that its units read, for the current indexes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_core.errors import ConflictError, UnsupportedError
from hudi_core.metadata_table.extract.data_file import read_file_statistics
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.records.file_statistics import DataFileRef
from hudi_core.metadata_table.write.commit_updates import CommitPartitions
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.write_stats import WriteStat
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]
ZONE = {"spark.sql.session.timeZone": "UTC"}
BY_FILE = {"bloom_filters", "column_stats", "expr_index_idx_day", "expr_index_idx_low"}
PARTITION = "2024-01-01"


@pytest.fixture(params=["8", "9"])
def table(golden: Golden, request: pytest.FixtureRequest) -> Table:
    return Table(golden(request.param, "mdt_all_cow").table)


def partitions(table: Table, names: list[str] | None = None) -> CommitPartitions:
    config = table.config if names is None else replace(table.config, metadata_partitions=frozenset(names))
    return CommitPartitions(table.storage, StoredTable(table.storage, config, ZONE))


def a_file(table: Table) -> tuple[DataFileRef, CommitMetadata]:
    """A base file of the table, as if a commit wrote it now."""
    path = min((table.path / PARTITION).glob("*.parquet"))
    file = DataFileRef(PARTITION, path.name, path.stat().st_size, is_base=True)
    file_id = path.name.partition("_")[0]
    stat = WriteStat(file_id, f"{PARTITION}/{path.name}", PARTITION, "null", 1, 0, 0, 1, file.size, file.size)
    return file, CommitMetadata({PARTITION: (stat,)}, operation_type=Operation.COMPACT)


def test_all_but_row_level_indexes_are_updated(table: Table) -> None:
    found = partitions(table)
    file, metadata = a_file(table)
    requirements = found.requirements()
    written = [read_file_statistics(table.storage, file, requirements)]
    records = {name: list(items) for name, items in found.records("1", metadata, written, requirements).items()}
    listed = table.config.metadata_partitions
    row_level = {name for name in listed if name == "record_index" or name.startswith("secondary_index_")}
    assert row_level
    assert records.keys() == listed - row_level
    assert all(records[name] for name in BY_FILE | {"files"})
    assert found.from_files() == BY_FILE


def test_records_of_single_files_are_omitted_where_they_are_staged(table: Table) -> None:
    found = partitions(table)
    file, metadata = a_file(table)
    requirements = found.requirements()
    written = [read_file_statistics(table.storage, file, requirements)]
    made = found.records("1", metadata, written, requirements, by_partition=True)
    records = {name: list(items) for name, items in made.items()}
    assert not any(records[name] for name in ("bloom_filters", "column_stats"))
    assert records["files"]
    assert records["partition_stats"]


def test_requirements_that_have_grown_stop_the_commit(table: Table) -> None:
    found = partitions(table)
    requirements = found.requirements()
    _, metadata = a_file(table)
    for requested in (
        replace(requirements, columns=requirements.columns[1:]),
        replace(requirements, bloom=False),
        replace(requirements, expressions=requirements.expressions[1:]),
        replace(requirements, version=3 - requirements.version),
    ):
        with pytest.raises(ConflictError, match="an index of the table was changed"):
            found.records("1", metadata, [], requested)


def test_statistics_of_more_than_is_required_are_enough(table: Table) -> None:
    """A column that the schema got since is null in the files that were written before."""
    found = partitions(table)
    requirements = found.requirements()
    _, metadata = a_file(table)
    newest = requirements.columns[-1]
    fields = [item for item in requirements.schema["fields"] if item["name"] != newest]
    before = replace(requirements, columns=requirements.columns[:-1], schema={**requirements.schema, "fields": fields})
    assert found.records("1", metadata, [], before)
    with_filters = replace(requirements, expressions=())
    assert partitions(table, ["column_stats"]).records("1", metadata, [], with_filters)


def test_an_unknown_partition_is_refused(table: Table) -> None:
    with pytest.raises(UnsupportedError, match="text_index_x"):
        partitions(table, ["files", "text_index_x"]).requirements()
