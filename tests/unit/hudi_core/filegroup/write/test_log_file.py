"""Blocks of a new log file, and what stays of one that fails. services/write/test_append.py tests those of a write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.codec.log.content import avro_block_records
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import FormatError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write.log_file import NewLogFile
from hudi_core.filegroup.write.markers import MarkerType, list_markers
from hudi_core.storage.local import LocalStorage
from hudi_core.view.file_group import DataFile
from tests.support.running_attempts import let_run

T, NAME = "20260102000000000", ".f-0_20260102000000000.log.1_0-1-0.cdc"
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}
ROWS = pa.record_batch({"x": ["a", "b"]})


def new_file(storage: LocalStorage) -> NewLogFile:
    attempt = TaskAttempt(0, 1, 0)
    return NewLogFile(storage, T, f"a/{NAME}", attempt, SCHEMA, marker=(NAME, MarkerType.CREATE))


def test_blocks_of_records(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    let_run(storage, T, 1)
    with new_file(storage) as log:
        log.write_records(BlockType.CDC_DATA, 4, [log.encoded(ROWS)] * 2)
        log.write_records(BlockType.CDC_DATA, 0, [])
        size = log.end()
    assert [marker.data_path for marker in list_markers(storage, T)] == [f"a/{NAME}"]
    blocks = [block for block in log_blocks(storage, [DataFile("a", NAME, size)]) if isinstance(block, LogBlock)]
    assert {(block.type, block.instant_time) for block in blocks} == {(BlockType.CDC_DATA, T)}
    data = (tmp_path / "a" / NAME).read_bytes()
    spans = [(block.content_offset, block.content_offset + block.content_length) for block in blocks]
    assert [avro_block_records(data[begin:end], path=NAME)[0] for begin, end in spans] == [4, 0]


def test_a_file_that_fails_is_removed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    let_run(storage, T, 1)
    log = new_file(storage)
    with pytest.raises(FormatError, match="column 'y'"), log:
        log.encoded(ROWS.rename_columns(["y"]))
    assert not (tmp_path / "a" / NAME).exists()
    assert [marker.data_path for marker in list_markers(storage, T)] == [f"a/{NAME}"]
