"""Restores, savepoints and rollbacks as real Hudi wrote them in every table version: read, and written again as the
same datum and schema.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from hudi_core.codec.avro.container import read_container
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.timeline.actions.content import decode_datum, encode_datum, load_schema
from hudi_core.timeline.actions.rollback import (
    RestoredInstant,
    RestoreMetadata,
    decode_restore_plan,
    decode_rollback_metadata,
    decode_rollback_plan,
    decode_savepoint,
    encode_restore_metadata,
    encode_restore_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
    encode_savepoint,
)
from tests.support.golden_data import golden_root

FOLDERS = ["6", "6-by-1.2.0", "8", "8-by-1.2.0", "9"]
_FILE = re.compile(r"\d+(?:_\d+)?\.(rollback|restore|savepoint)(\.requested)?")


@cache
def stored(folder: str) -> dict[str, list[bytes]]:
    """The files of a corpus folder by kind: `restore.requested`, `savepoint` …"""
    found: dict[str, list[bytes]] = {}
    root = golden_root() / folder
    for archive in [*root.glob("*.zip"), *root.glob("*.expected/after.zip")]:
        with zipfile.ZipFile(archive) as zipped:
            for name in zipped.namelist():
                match = _FILE.fullmatch(name.rsplit("/", 1)[-1])
                if match is not None:
                    found.setdefault(match[1] + (match[2] or ""), []).append(zipped.read(name))
    return found


def rewritten(kind: str, data: bytes) -> bytes:
    if kind == "rollback.requested":
        plan = decode_rollback_plan(data, path="x")
        return encode_rollback_plan(plan.instant, plan.action, plan.requests)
    if kind == "rollback":
        return encode_rollback_metadata(decode_rollback_metadata(data, path="x"))
    if kind == "restore.requested":
        return encode_restore_plan(decode_restore_plan(data, path="x"))
    if kind == "restore":
        return encode_restore_metadata(restore_metadata(decode_datum(data, path="x")))
    return encode_savepoint(decode_savepoint(data, path="x"))


def restore_metadata(raw: dict[str, Any]) -> RestoreMetadata:
    rollbacks = {
        time: decode_rollback_metadata(encode_datum("HoodieRollbackMetadata", done), path="x")
        for time, (done,) in raw["hoodieRestoreMetadata"].items()
    }
    instants = tuple(RestoredInstant(item["commitTime"], item["action"]) for item in raw["restoreInstantInfo"])
    return RestoreMetadata(raw["startRestoreTime"], raw["timeTakenInMillis"], instants, rollbacks)


def of_kind(kind: str) -> Iterator[tuple[str, bytes]]:
    for folder in FOLDERS:
        for data in stored(folder).get(kind, []):
            yield folder, data


@pytest.mark.parametrize(
    ("kind", "count"),
    [("rollback.requested", 40), ("rollback", 40), ("restore.requested", 8), ("restore", 8), ("savepoint", 10)],
)
def test_written_as_real_hudi_does(kind: str, count: int) -> None:
    files = list(of_kind(kind))
    assert len(files) >= count
    assert {folder for folder, _ in files} == set(FOLDERS)
    for _, data in files:
        ours = rewritten(kind, data)
        assert decode_datum(ours, path="x") == decode_datum(data, path="x")
        assert read_container(ours, path="x")[0] == read_container(data, path="x")[0]


@pytest.mark.parametrize("name", ["HoodieRestorePlan", "HoodieRestoreMetadata", "HoodieSavepointMetadata"])
def test_schemas_are_whole(name: str) -> None:
    assert json.loads(json.dumps(load_schema(name)))["name"] == name


def restore_plan(**members: object) -> bytes:
    return encode_datum(
        "HoodieRestorePlan", {"instantsToRollback": [], "version": 2, "savepointToRestoreTimestamp": "1", **members}
    )


def savepoint(partition: str, name: str) -> bytes:
    parts = {partition: {"partitionPath": partition, "savepointDataFile": [name]}}
    return encode_datum(
        "HoodieSavepointMetadata",
        {"savepointedBy": "u", "savepointedAt": 1, "comments": "", "partitionMetadata": parts, "version": 1},
    )


BAD: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "restore of a nameless instant": (
        lambda: decode_restore_plan(
            restore_plan(instantsToRollback=[{"commitTime": "", "action": "commit"}]), path="x"
        ),
        CorruptFileError,
    ),
    "another record": (lambda: decode_restore_plan(savepoint("p", "f"), path="x"), CorruptFileError),
    "no container": (lambda: decode_savepoint(b"{}", path="x"), CorruptFileError),
    "savepoint outside the table": (lambda: decode_savepoint(savepoint("../p", "f"), path="x"), FormatError),
    "savepoint of a path": (lambda: decode_savepoint(savepoint("p", "a/b"), path="x"), FormatError),
    "rollback of nothing": (
        lambda: decode_rollback_plan(encode_rollback_plan("", "commit", []), path="x"),
        CorruptFileError,
    ),
    "rollback metadata of another record": (
        lambda: decode_rollback_metadata(savepoint("p", "f"), path="x"),
        CorruptFileError,
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_name_themselves(case: str) -> None:
    read, kind = BAD[case]
    with pytest.raises(kind, match="x") as error:
        read()
    assert error.value.path == "x"  # type: ignore[attr-defined]
