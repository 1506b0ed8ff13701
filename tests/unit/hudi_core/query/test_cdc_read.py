from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.model.names import FileGroupId
from hudi_core.query.cdc_read import Change, Image, cdc_batches
from hudi_core.query.read_plan import split_of
from hudi_core.storage.local import LocalStorage
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.golden_data import GoldenCase
from tests.support.log_files import data, put
from tests.support.memory_storage import MemoryStorage

Golden = Callable[[str, str], GoldenCase]


def cdc_files(table: Path) -> list[DataFile]:
    """The change-data logs of a table."""
    return [
        DataFile(path.parent.relative_to(table).as_posix(), path.name, path.stat().st_size)
        for path in sorted(table.glob("**/.*.cdc"))
    ]


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize(
    ("case", "columns"), [("cdc_cow", ["op", "ts_ms", "before", "after"]), ("cdc_cow_op_key", ["op", "record_key"])]
)
def test_entries_of_golden_tables(golden: Golden, version: str, case: str, columns: list[str]) -> None:
    """24 entries of an upsert and 6 of a delete: the same input in every version."""
    table = golden(version, case).table
    found: Counter[str] = Counter()
    for file in cdc_files(table):
        for batch in cdc_batches(LocalStorage(str(table)), file):
            assert batch.schema.names == columns
            found.update(batch["op"].to_pylist())
            if "after" in columns:
                for op, before, after in zip(
                    *(batch[name].to_pylist() for name in ("op", "before", "after")), strict=True
                ):
                    assert ((before is None), (after is None)) == {
                        "i": (True, False),
                        "u": (False, False),
                        "d": (False, True),
                    }[op]
                    assert not {
                        name for row in (before, after) if row for name in row if name.startswith("_hoodie_")
                    } - {"_hoodie_is_deleted"}
    assert found.total() == 30
    assert found["d"] == 6


def test_what_is_no_change_data_is_refused() -> None:
    storage = MemoryStorage()
    file = put(storage, 1, data("002", [("a", 1, "x")]))
    with pytest.raises(UnsupportedError, match="AVRO_DATA"):
        list(cdc_batches(storage, file))
    cut = put(storage, 2, data("002", [("a", 1, "x")])[:-9])
    with pytest.raises(CorruptFileError, match=r"\.log\.2"):
        list(cdc_batches(storage, cut))


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
def test_a_change_comes_back_from_its_text(change: Change) -> None:
    assert from_text(Change, to_text(change)) == change
    assert change.check() is change


def test_the_files_that_a_reader_opens() -> None:
    assert CHANGE.files() == [CDC, BASE, BASE, LOG]
    assert split_of(CHANGE)["bytes"] == 27


@pytest.mark.parametrize(
    "damaged",
    [
        replace(CHANGE, partition="../up"),
        replace(CHANGE, partition="other"),
        replace(CHANGE, logs=(DataFile("day", "../x", 1),)),
        replace(CHANGE, logs=(DataFile("other", CDC.name, 1),)),
        replace(CHANGE, logs=(DataFile("day", "notes.txt", 1),)),
        replace(CHANGE, before=Image(FileSlice(GROUP, "001", DataFile("day", "../x.parquet", 1)))),
    ],
)
def test_names_outside_the_table_are_refused(damaged: Change) -> None:
    with pytest.raises(FormatError):
        damaged.check()
