"""Texts of log blocks that are no UTF-8, as a cast of binary to text in Spark makes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import VERSIONS, compact_all
from tests.support.tiers import tiered


def odd_names(table: Path) -> list[bytes]:
    result = HudiTable.open(str(table)).read()
    rows = pa.Table.from_batches(list(result.batches), result.schema)
    return sorted(text for text in rows["name"].cast(pa.binary()).to_pylist() if b"\xff" in text)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("name", ["mor_basic", "mdt_all_mor"])
def test_their_bytes_are_read_and_compacted_unchanged(
    golden: Callable[[str, str], GoldenCase], version: str, name: str
) -> None:
    """With column statistics of them in the metadata table of `mdt_all_mor`."""
    table = golden(version, name).table
    for log in table.glob("*/.*.log.*"):
        log.write_bytes(log.read_bytes().replace(b"quartz", b"\xff\xfeartz"))
    before = odd_names(table)
    assert before
    assert all(text.startswith(b"\xff\xfeartz-") for text in before)
    compact_all(table)
    assert odd_names(table) == before
