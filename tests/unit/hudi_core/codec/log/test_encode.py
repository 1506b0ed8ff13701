from __future__ import annotations

import pytest

from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey
from hudi_core.codec.log.encode import encode_block
from hudi_core.errors import FormatError


def test_a_rollback_command_is_byte_for_byte_what_hudi_writes() -> None:
    headers = {
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        HeaderKey.INSTANT_TIME: "20261120213502246",
        HeaderKey.TARGET_INSTANT_TIME: "20261120213453318",
    }
    assert encode_block(BlockType.COMMAND, headers) == bytes.fromhex(
        "234855444923 000000000000005b 00000001 00000000 00000003"
        + " 00000000 00000011 "
        + b"20261120213502246".hex()
        + " 00000001 00000011 "
        + b"20261120213453318".hex()
        + " 00000003 00000001 30 0000000000000000 00000000 0000000000000061"
    )


def test_headers_that_hudi_0_15_does_not_know_are_refused_unless_readers_do() -> None:
    headers = {HeaderKey.INSTANT_TIME: "1", HeaderKey.IS_PARTIAL: "true"}
    with pytest.raises(FormatError, match="IS_PARTIAL"):
        encode_block(BlockType.AVRO_DATA, headers)
    assert encode_block(BlockType.AVRO_DATA, headers, hudi_1_headers=True)


def test_corrupt_blocks_are_never_written() -> None:
    with pytest.raises(FormatError, match="CORRUPT"):
        encode_block(BlockType.CORRUPT, {})
