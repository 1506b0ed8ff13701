from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hudi_core.errors import ConfigError, FormatError
from hudi_core.model.ids import FileGroupId
from hudi_core.view.file_group import DataFile, FileSlice
from hudi_core.view.slice_json import check_slice, slice_from_json, slice_to_json

BASE = DataFile("day=1", "f-0_1-2-3_20260101000000000.parquet", 7)
LOG = DataFile("day=1", ".f-0_20260101000000000.log.1_1-2-3", 5)
SLICE = FileSlice(FileGroupId("day=1", "f-0"), "20260101000000000", BASE, (LOG,))


@pytest.mark.parametrize("item", [SLICE, replace(SLICE, base_file=None), replace(SLICE, log_files=())])
def test_a_slice_comes_back_from_json_with_its_size(item: FileSlice) -> None:
    raw = json.loads(json.dumps(slice_to_json(item)))
    assert slice_from_json(raw) == item
    assert raw["bytes"] == sum(file.size for file in item.files)


@pytest.mark.parametrize(
    "changes",
    [
        {"partition": "../other"},
        {"file_id": "a/b"},
        {"base_file": {"name": "../f.parquet", "size": 1}},
        {"log_files": [{"name": "/etc/passwd", "size": 1}]},
        {"log_files": None},
        {"base_file": {"name": "f.parquet"}},
    ],
)
def test_names_outside_the_table_and_other_forms_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, FormatError)):
        slice_from_json(slice_to_json(SLICE) | changes)


def test_a_slice_is_checked_where_it_arrives_as_it_is() -> None:
    assert check_slice(SLICE) is SLICE
    with pytest.raises(FormatError, match="not in the partition"):
        check_slice(replace(SLICE, log_files=(replace(LOG, partition="day=2"),)))
    for file in (replace(BASE, name="../f.parquet"), replace(BASE, name="a/b.parquet")):
        with pytest.raises(FormatError):
            check_slice(replace(SLICE, base_file=file))
    with pytest.raises(FormatError):
        check_slice(replace(SLICE, file_group=FileGroupId("../day=1", "f-0")))
