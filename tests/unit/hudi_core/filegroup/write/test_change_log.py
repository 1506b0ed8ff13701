"""The schema of change logs, by real Hudi's, and their blocks. services/write/test_upsert_change_logs.py tests what is
in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.codec.log.content import avro_block_records
from hudi_core.config.table_config import KEYS_ONLY, ROWS_BEFORE
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write import change_log
from hudi_core.filegroup.write.change_log import ChangeLog, change_schema
from hudi_core.storage.local import LocalStorage
from hudi_core.view.file_group import DataFile
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.running_attempts import let_run
from tests.support.writes import commit_of

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("name", ["cdc_cow", "cdc_cow_op_key"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_schema_of_entries_is_real_hudis(golden: Golden, version: str, name: str) -> None:
    """In 1.2 the record has an empty text `doc` besides."""
    table = golden(version, name).table
    log = next(table.rglob("*.cdc"))
    file = DataFile(log.parent.name, log.name, log.stat().st_size)
    (block,) = (item for item in log_blocks(LocalStorage(table), [file]) if isinstance(item, LogBlock))
    theirs = json.loads(block.schema or "")
    if "doc" in theirs:
        assert (version, theirs.pop("doc")) == ("9", "")
    schema = json.loads(commit_of(table, block.instant_time).schema_text or "")
    assert change_schema(open_context(table).config.change_logs or "", schema) == theirs


def test_the_schema_with_rows_before_has_their_keys() -> None:
    """HoodieCDCUtils.createCDCSchema. A table's schema may have its namespace in its name, or none."""
    for table, space in ({"name": "a.b.rows"}, {"namespace": "a.b"}), ({"name": "rows"}, {}):
        schema = change_schema(ROWS_BEFORE, {"type": "record", "fields": [], **table})
        assert [field["name"] for field in schema["fields"]] == ["op", "record_key", "before"]
        assert schema["fields"][2]["type"] == ["null", {"type": "record", "fields": [], "name": "rows"}]
        assert {name: value for name, value in schema.items() if name == "namespace"} == space


@pytest.mark.parametrize(("most", "counts"), [(1, [2, 2, 2]), (30, [4, 2]), (1 << 20, [6])])
def test_entries_are_cut_into_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, counts: list[int]
) -> None:
    storage, instant = LocalStorage(tmp_path), "20260102000000000"
    let_run(storage, instant, 1)
    monkeypatch.setattr(change_log, "BLOCK_BYTES", most)
    table = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}
    with ChangeLog(storage, instant, table, "a", "f-0", TaskAttempt(0, 1, 0), KEYS_ONLY, by_name=True) as log:
        for _ in range(3):
            log.add(pa.array(["k1", "k2"]), None, None)
        with pytest.raises(ExecutionError, match="6 entries where 5 are due"):
            log.close(5)
        ((path, size),) = log.close(6)
    file = DataFile("a", path.removeprefix("a/"), size)
    data = (tmp_path / path).read_bytes()
    blocks = [block for block in log_blocks(storage, [file]) if isinstance(block, LogBlock)]
    spans = [(block.content_offset, block.content_offset + block.content_length) for block in blocks]
    assert [avro_block_records(data[begin:end], path=path)[0] for begin, end in spans] == counts
