"""The schema of change logs, by real Hudi's. services/write/test_upsert_change_logs.py tests what is in them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.config.table_config import ROWS_BEFORE
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write.change_log import change_schema
from hudi_core.storage.local import LocalStorage
from hudi_core.view.file_group import DataFile
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
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
