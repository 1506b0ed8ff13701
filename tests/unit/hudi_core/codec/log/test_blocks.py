from __future__ import annotations

import pytest

from hudi_core.codec.log.blocks import BlockType, CorruptBlock, HeaderKey, LogBlock


def block(kind: BlockType, **headers: str) -> LogBlock:
    return LogBlock(kind, {HeaderKey[name]: value for name, value in headers.items()}, 0, 0, "x", 0, 0, lambda *_: b"")


def test_what_headers_say() -> None:
    data = block(BlockType.AVRO_DATA, INSTANT_TIME="001", SCHEMA="{}", IS_PARTIAL="TRUE")
    assert (data.instant_time, data.schema, data.is_partial, data.is_rollback) == ("001", "{}", True, False)
    assert data.target_instant_time is None
    assert block(BlockType.AVRO_DATA).instant_time is None
    assert not block(BlockType.AVRO_DATA, IS_PARTIAL="false").is_partial


@pytest.mark.parametrize(
    ("kind", "command", "expected"),
    [(BlockType.COMMAND, "0", True), (BlockType.COMMAND, "1", False), (BlockType.DELETE, "0", False)],
)
def test_a_rollback_is_a_command_of_its_number(kind: BlockType, command: str, expected: bool) -> None:
    rollback = block(kind, COMMAND_BLOCK_TYPE=command, TARGET_INSTANT_TIME="001")
    assert rollback.is_rollback is expected
    assert rollback.target_instant_time == "001"


def test_ordinals_are_those_of_hudi() -> None:
    """HoodieLogBlockType and HeaderMetadataType: files hold the numbers."""
    assert [kind.name for kind in sorted(BlockType)] == [
        "COMMAND", "DELETE", "CORRUPT", "AVRO_DATA", "HFILE_DATA", "PARQUET_DATA", "CDC_DATA",
    ]  # fmt: skip
    assert HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS == 8
    assert CorruptBlock("x", 3, 4, "no magic").type is BlockType.CORRUPT
