from __future__ import annotations

import json

import pytest

from hudi_core.errors import ConfigError, FormatError
from hudi_core.model.names import FileGroupId
from hudi_core.query.cdc_change import Change, Image
from hudi_core.view.file_group import DataFile, FileSlice

GROUP = FileGroupId("day", "f-0")
BASE = DataFile("day", "f-0_0-1-2_001.parquet", 10)
LOG = DataFile("day", ".f-0_001.log.1_0-1-2", 3)
CDC = DataFile("day", ".f-0_002.log.2_0-1-2.cdc", 4)
CHANGE = Change(
    "002",
    "day",
    (CDC,),
    Image(FileSlice(GROUP, "001", BASE), "002", False),
    Image(FileSlice(GROUP, "001", BASE, (LOG,))),
)


@pytest.mark.parametrize(
    "change", [CHANGE, Change("003", "", before=CHANGE.before), Change("004", "p", after=CHANGE.after)]
)
def test_a_change_crosses_as_json(change: Change) -> None:
    assert Change.from_json(json.loads(json.dumps(change.to_json()))) == change


def test_the_files_that_a_reader_opens() -> None:
    assert CHANGE.files() == [CDC, BASE, BASE, LOG]
    assert CHANGE.to_json()["bytes"] == 27


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("partition", "../up", FormatError),
        ("logs", [{"name": "../x", "size": 1}], FormatError),
        ("logs", [{"name": "notes.txt", "size": 1}], FormatError),
        ("logs", [{"name": CDC.name}], ConfigError),
        ("logs", None, ConfigError),
        ("before", {"slice": 1}, ConfigError),
    ],
)
def test_splits_that_are_not_ours(name: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        Change.from_json({**CHANGE.to_json(), name: value})


def test_a_split_without_a_field() -> None:
    raw = CHANGE.to_json()
    del raw["instant"]
    with pytest.raises(ConfigError, match="not what this version writes"):
        Change.from_json(raw)
