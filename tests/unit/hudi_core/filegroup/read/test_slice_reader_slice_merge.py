"""When log records are merged by positions, and when by keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_core.codec.log.positions import encode_positions
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.slice_reader import block_positions

BASE = "p/f-0_0-1-2_001.parquet"
POLICY = MergePolicy(("key",), (), by_position=True)
EMPTY = "AAAAAAAAAAA="


def block(text: str | None, instant: str | None = "001") -> LogBlock:
    headers = {
        HeaderKey.RECORD_POSITIONS: text,
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: instant,
    }
    present = {key: value for key, value in headers.items() if value is not None}
    return LogBlock(BlockType.AVRO_DATA, present, 0, 0, "p/.f-0.log", 0, 0, lambda *_: b"")


def some(*rows: int) -> str:
    return encode_positions(np.array(rows))


def test_each_block_names_rows_of_the_base_file() -> None:
    found = block_positions([block(some(0, 2)), block(some(7))], BASE, POLICY)
    assert found is not None
    assert [positions.rows(positions.count).tolist() for positions in found] == [[0, 2], [7]]
    assert block_positions([], BASE, POLICY) == ()


@pytest.mark.parametrize("other", [block(None), block(None, None), block(some(1), "000"), block(EMPTY)])
def test_one_block_that_does_not_is_enough(other: LogBlock) -> None:
    """Of the same writer (two records for one row), of another, or of a base file before this one."""
    for blocks in ([block(some(0)), other], [other, block(some(0))]):
        assert block_positions(blocks, BASE, POLICY) is None


def test_what_has_no_rows_by_number() -> None:
    for base in (None, BASE.replace("parquet", "orc"), BASE.replace("parquet", "hfile")):
        assert block_positions([block(some(0))], base, POLICY) is None
    assert block_positions([block(some(0))], BASE, replace(POLICY, by_position=False)) is None


def test_broken_positions_name_the_log_file() -> None:
    with pytest.raises(CorruptFileError, match=r"record positions of a log block are broken") as found:
        block_positions([block("AAAA")], BASE, POLICY)
    assert found.value.path == "p/.f-0.log"


@pytest.mark.parametrize(("version", "expected"), [("6", False), ("8", True), ("9", True)])
@pytest.mark.parametrize("function", [None, "own"])
def test_tables_that_hudi_1_keeps(version: str, expected: bool, function: str | None) -> None:
    """Hudi 0.15 does not know positions; hoodie.merge.use.record.positions=false is Hudi's own way to do without."""
    config = TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": version,
            "hoodie.table.recordkey.fields": "id",
        }
    )
    chosen = {} if function is None else {"airflow_hudi.merge.function": function}
    assert MergePolicy.for_table(config, chosen).by_position == expected
    assert not MergePolicy.for_table(config, {**chosen, "hoodie.merge.use.record.positions": "false"}).by_position
