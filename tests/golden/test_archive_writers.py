"""The archives that real Hudi wrote, written again by us from the states that they hold: the same bytes, or the same
rows and footers.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.log.blocks import LogBlock, walk
from hudi_core.codec.log.content import avro_block_records
from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.config.table_config import TableConfig
from hudi_core.history.archived import load_history
from hudi_core.history.archived_instant import ArchivedInstant, StateFile
from hudi_core.history.archiving import encode_archive
from hudi_core.history.log_archive import archive_files
from hudi_core.history.lsm_writer import LsmWriter, compact_levels, encode_history
from hudi_core.history.manifest import read_manifest
from hudi_core.timeline.actions.content import decode_datum, dump, encode_datum
from hudi_core.timeline.instant import Action, Instant, State, completed_action
from tests.support.golden_timelines import load_table
from tests.support.memory_storage import MemoryStorage

CASES = ("archived_timeline_cow", "archived_timeline_mor")
FOLDER = ".hoodie/timeline/history"
CONTAINERS = {
    "hoodieCleanMetadata": "HoodieCleanMetadata",
    "hoodieCleanerPlan": "HoodieCleanerPlan",
    "hoodieCompactionPlan": "HoodieCompactionPlan",
}


def records(data: bytes, path: str) -> Iterator[dict[str, Any]]:
    """The records of a file of the archive of layout 1."""
    for block in walk(lambda offset, length: data[offset : offset + length], len(data), path):
        assert isinstance(block, LogBlock)
        assert block.schema is not None
        codec = DatumCodec(parse_schema(block.schema, path=path), path=path)
        count, rest = avro_block_records(
            data[block.content_offset : block.content_offset + block.content_length], path=path
        )
        for _ in range(count):
            size = int.from_bytes(rest[:4], "big")
            yield codec.decode(rest[4 : 4 + size], path=path)
            rest = rest[4 + size :]
        assert not rest


def state_file(record: dict[str, Any]) -> StateFile:
    """The state file that a record was made of, as far as the record has it."""
    action, state = record["actionType"], State[record["actionState"]]
    data = b""
    for name, value in record.items():
        if name in CONTAINERS and value is not None:
            data = encode_datum(CONTAINERS[name], value)
        elif (
            name.endswith(("CommitMetadata", "InflightReplaceMetadata"))
            and value is not None
            and state is not State.REQUESTED
        ):
            data = dump({key: item for key, item in value.items() if key != "version"})
    if record["hoodieRequestedReplaceMetadata"] is not None:
        data = REQUESTED_REPLACE
    return StateFile(action, state, data, record["commitTime"], record["stateTransitionTime"])


def _requested_replace() -> bytes:
    storage = load_table("archived_timeline_mor", "6")
    (path,) = [info.path for info in storage.list_files(".hoodie") if info.name.endswith(".replacecommit.requested")]
    return storage.read(path)


REQUESTED_REPLACE = _requested_replace()
"""The plan of an overwrite: a container whose record is null in every field."""


@pytest.mark.parametrize("case", CASES)
def test_layout_1_byte_by_byte(case: str) -> None:
    storage = load_table(case, "6")
    files = archive_files(storage, ".hoodie/archived")
    assert len(files) == 3
    for _, file in files:
        golden = storage.read(file.path)
        grouped: dict[tuple[str, str], list[StateFile]] = {}
        for record in records(golden, file.path):
            grouped.setdefault((record["commitTime"], completed_action(record["actionType"])), []).append(
                state_file(record)
            )
        instants = [
            ArchivedInstant(Instant(time, action, State.COMPLETED, None, None), tuple(found))
            for (time, action), found in grouped.items()
        ]
        assert encode_archive(instants, batch=2) == golden


def instants_of(rows: list[dict[str, Any]]) -> list[ArchivedInstant]:
    """The instants that rows of the archive of layout 2 were made of."""
    found = []
    for row in rows:
        time, action = row["instantTime"], row["action"]
        pending = action if row["plan"] is None or action != Action.COMMIT else Action.COMPACTION
        plan = () if row["plan"] is None else (StateFile(pending, State.REQUESTED, row["plan"], time, time),)
        completed = StateFile(action, State.COMPLETED, row["metadata"], time, time)
        found.append(
            ArchivedInstant(Instant(time, action, State.COMPLETED, row["completionTime"], pending), (*plan, completed))
        )
    return found


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("case", CASES)
def test_layout_2_rows_schema_and_footer(version: str, case: str) -> None:
    storage = load_table(case, version)
    names = [info.name for info in storage.list_files(FOLDER) if info.name.endswith(".parquet")]
    assert len(names) == 4
    for name in names:
        golden = pq.ParquetFile(io.BytesIO(storage.read(f"{FOLDER}/{name}")))
        rows = golden.read()
        ours = pq.ParquetFile(io.BytesIO(encode_history(instants_of(rows.to_pylist()), path=name)))
        assert ours.read().equals(rows)
        assert ours.metadata.metadata == golden.metadata.metadata
        for column in range(6):
            assert ours.schema.column(column).equals(golden.schema.column(column))
            assert ours.metadata.row_group(0).column(column).compression == "GZIP"


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("case", CASES)
def test_layout_2_snapshots_and_the_merge_of_level_0(version: str, case: str) -> None:
    golden = load_table(case, version)
    levels = [read_manifest(golden, FOLDER, number) for number in (1, 2, 3)]
    storage = MemoryStorage()
    writer = LsmWriter(
        storage, FOLDER, lambda: None, ArchiveConfig(history_batch=3, history_file_bytes=1 << 30, manifests_retained=3)
    )
    for file in levels[-1]:
        writer.write(instants_of(pq.read_table(io.BytesIO(golden.read(file.path))).to_pylist()))
    for number, files in enumerate(levels, 1):
        assert [(file.name, file.begin, file.end) for file in read_manifest(storage, FOLDER, number)] == [
            (file.name, file.begin, file.end) for file in files
        ]
    writer.finish()
    assert sorted(info.name for info in storage.list_files(FOLDER)) == sorted(
        info.name for info in golden.list_files(FOLDER)
    )
    assert storage.read(f"{FOLDER}/_version_") == golden.read(f"{FOLDER}/_version_") == b"4"
    (merged,) = read_manifest(storage, FOLDER, 4)
    (expected,) = read_manifest(golden, FOLDER, 4)
    assert merged.name == expected.name
    assert pq.read_table(io.BytesIO(storage.read(merged.path))).equals(
        pq.read_table(io.BytesIO(golden.read(expected.path)))
    )
    layout = dump({"files": [{"fileName": merged.name, "fileLen": storage.stat(merged.path).size}]})
    assert storage.read(f"{FOLDER}/manifest_4") == layout
    assert golden.read(f"{FOLDER}/manifest_4") == dump(
        {"files": [{"fileName": expected.name, "fileLen": golden.stat(expected.path).size}]}
    )


def test_our_reader_reads_what_the_golden_archive_said() -> None:
    golden = load_table("archived_timeline_mor", "9")
    config = TableConfig.load(golden)
    before = {
        instant: load_history(golden, config).content(instant) for instant in load_history(golden, config).instants()
    }
    compact_levels(golden, FOLDER, lambda: None, batch=2, most_bytes=1 << 30)
    again = load_history(golden, config)
    assert {instant: again.content(instant) for instant in again.instants()} == before
    assert decode_datum(REQUESTED_REPLACE, path="requested") == dict.fromkeys(
        ("operationType", "clusteringPlan", "extraMetadata", "version")
    )
