"""Reads and writes the content of timeline files. Plans and the metadata of actions are Avro object containers of one
datum; metadata of commits is JSON up to table version 6.

A half-written file is read again for a while (read_stable). A file is decoded with the schema in it, so every member's
type is checked. Of a path in a plan, only the file name counts, and its folder must be the partition
(name_in_partition). model/partition.py says which partition paths are safe.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar

from hudi_core.codec.avro.container import is_container, is_whole, read_container, write_container
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import is_small, once

YOUNG_SECONDS: Final = 10.0
"""For so many seconds after its last change, a truncated file may still be written; later its writer is dead."""
PAUSES_SECONDS: Final[Sequence[float]] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Seconds to wait before each further read: 1.3 s in all."""


def read_stable(storage: Storage, path: str) -> bytes:
    """Returns the content of a file that another process may be writing. A truncated and recent file is read again
    until its writer has finished. A file that is still truncated then is returned as it is. Raises
    StorageNotFoundError.

    Hudi creates a file of the timeline atomically when the storage does so (object stores), or by a rename (HDFS). On a
    plain file system it creates the file and then writes it (HoodieStorage.createImmutableFileInPath,
    needCreateTempFile): for a moment the file is empty, or has only the first of its buffers of 4.5 KiB. A plan then
    looks damaged, and a completed commit looks like one that wrote nothing.
    """

    def read() -> bytes:
        data = storage.read(path)
        for pause in PAUSES_SECONDS:
            if not looks_cut_short(data) or abs(time.time() - storage.stat(path).modified) > YOUNG_SECONDS:
                break
            time.sleep(pause)
            data = storage.read(path)
        return data

    return once(storage, path, read, lambda data: is_small(len(data)) and not looks_cut_short(data))


def looks_cut_short(data: bytes) -> bool:
    """Whether the bytes are neither a whole Avro container nor a JSON object. Braces in texts come in pairs."""
    if is_container(data):
        return not is_whole(data)
    text = data.rstrip()
    return not (text.startswith(b"{") and text.endswith(b"}") and text.count(b"{") == text.count(b"}"))


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Returns the Avro schema of a record that Hudi 0.15 writes, by its short name, also from the job's zip."""
    schema: dict[str, Any] = json.loads((files("hudi_core.timeline") / "avsc" / f"{name}.avsc").read_bytes())
    return schema


def decode_any(data: bytes, *, path: str, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Decodes an Avro, JSON or empty ({}) file to a dict without the fields `without`. Raises CorruptFileError."""
    if not data:
        return {}
    if is_container(data):
        return decode_datum(data, path=path, without=without)
    return {name: value for name, value in load_object(data, path=path).items() if name not in without}


def decode_record(data: bytes, name: str, what: str, *, path: str) -> dict[str, Any]:
    """Returns the record of decode_datum. Raises CorruptFileError, also for a record without the field `name`, which is
    no `what`.
    """
    raw = decode_datum(data, path=path)
    if name not in raw:
        raise CorruptFileError(f"the Avro record is no {what}", path=path)
    return raw


def decode_datum(data: bytes, *, path: str, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Returns the one record of a container. Raises CorruptFileError naming `path` when there is not exactly one."""
    _, records = read_container(data, path=path, without=without)
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptFileError(f"holds {len(records)} Avro records where one is due", path=path)
    return records[0]


def encode_datum(
    schema_name: str,
    datum: dict[str, Any],
    *,
    metadata: Mapping[str, bytes] | None = None,
    later_fields: Sequence[dict[str, Any]] = (),
    later_in: str | None = None,
) -> bytes:
    """Returns a container in the schema that Hudi 0.15 writes, with `later_fields` in it, or in the records of its
    field `later_in`. Fields that `datum` lacks have the schema's default, such as `version`.
    """
    return write_container(_with_fields(load_schema(schema_name), later_fields, later_in), [datum], metadata)


def _with_fields(schema: dict[str, Any], later: Sequence[dict[str, Any]], within: str | None) -> dict[str, Any]:
    if not later:
        return schema
    if schema["type"] == "array":
        return {**schema, "items": _with_fields(schema["items"], later, within)}
    if within is None:
        return {**schema, "fields": [*schema["fields"], *later]}
    fields = []
    for field in schema["fields"]:
        kinds = field["type"]
        if field["name"] == within:
            kinds = [_with_fields(kind, later, None) if isinstance(kind, dict) else kind for kind in kinds]
        fields.append({**field, "type": kinds})
    return {**schema, "fields": fields}


def dump(value: Any) -> bytes:
    """Returns UTF-8 as Jackson's default pretty printer: two spaces a level, `"key" : value`, `[ a, b ]` on a line."""
    return _render(value, 0).encode()


def _render(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        if not value:
            return "{ }"
        pad = "  " * (depth + 1)
        members = (
            f"{pad}{json.dumps(str(key), ensure_ascii=False)} : {_render(item, depth + 1)}"
            for key, item in value.items()
        )
        return "{\n" + ",\n".join(members) + "\n" + "  " * depth + "}"
    if isinstance(value, list | tuple):
        return "[ " + ", ".join(_render(item, depth) for item in value) + " ]" if value else "[ ]"
    return json.dumps(value, ensure_ascii=False)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")  # as in Jackson; Python would read it


def load_object(data: bytes, *, path: str) -> dict[str, Any]:
    """Parses a JSON object; raises CorruptFileError naming `path` for anything else."""
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"not valid JSON: {error}", path=path, remedy=DAMAGED) from error
    if not isinstance(value, dict):
        raise CorruptFileError("not a JSON object", path=path, remedy=DAMAGED)
    return value


T = TypeVar("T")

DAMAGED: Final = "the file is damaged; restore it from a backup, or roll the instant back with Hudi's CLI"
"""The remedy in errors of damaged files."""
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


def member(raw: dict[str, Any], name: str, kind: type | tuple[type, ...], *, path: str, default: Any = None) -> Any:
    """Returns the member `name` of `raw`, `default` if absent or null. Raises CorruptFileError for another kind."""
    value = raw.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise CorruptFileError(f"{name!r} holds a {type(value).__name__}", path=path, remedy=DAMAGED)
    if kind is int and isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise CorruptFileError(f"{name!r} holds a number that is no long", path=path, remedy=DAMAGED)
    return value


def _of_items(raw: dict[str, Any], name: str, kind: type, of: type, expected: str, path: str) -> Any:
    items = member(raw, name, kind, path=path, default=kind())
    if not all(isinstance(item, of) for item in (items.values() if kind is dict else items)):
        raise CorruptFileError(f"{name!r} holds something other than {expected}", path=path)
    return items


def records(raw: dict[str, Any], name: str, *, path: str) -> list[dict[str, Any]]:
    """Returns a list of records, empty if absent or null. This and all below raise CorruptFileError naming `path`."""
    items: list[dict[str, Any]] = _of_items(raw, name, list, dict, "records", path)
    return items


def record_map(raw: dict[str, Any], name: str, *, path: str) -> dict[str, dict[str, Any]]:
    items: dict[str, dict[str, Any]] = _of_items(raw, name, dict, dict, "records", path)
    return items


def texts(raw: dict[str, Any], name: str, *, path: str) -> list[str]:
    items: list[str] = _of_items(raw, name, list, str, "text", path)
    return items


def text_map(raw: dict[str, Any], name: str, *, path: str) -> dict[str, str]:
    items: dict[str, str] = _of_items(raw, name, dict, str, "text", path)
    return items


def numbers(raw: dict[str, Any], name: str, *, path: str) -> dict[str, float]:
    """Returns a map of numbers that fit into a long."""
    items: dict[str, float] = member(raw, name, dict, path=path, default={})
    if not all(isinstance(item, float | int) and abs(item) < 2**63 for item in items.values()):
        raise CorruptFileError(f"{name!r} holds something other than numbers of 64 bits", path=path)
    return items


def text(raw: dict[str, Any], name: str, *, path: str) -> str:
    value: str = member(raw, name, str, path=path, default="")
    return value


def plan_version(raw: dict[str, Any], plan: str, *, path: str) -> int:
    """Returns the version of a clean or compaction plan, 1 or 2. Raises UnsupportedError naming `path` for others."""
    version: int = member(raw, "version", int, path=path, default=1)
    if version not in (1, 2):
        raise UnsupportedError(f"{plan} version {version} is not supported", path=path, remedy="versions 1 and 2 are")
    return version


def parsed(parse: Callable[[str], T], name: str, *, path: str, remedy: str) -> T:
    """Returns the result of `parse` for a file name in a plan. Raises FormatError naming the plan and what helps."""
    try:
        return parse(name)
    except FormatError as error:
        raise FormatError(error.message, path=path, remedy=remedy) from error


def name_in_partition(value: str, partition: str, *, path: str, remedy: str) -> str:
    """Returns the plain file name of an absolute path. The folder before it must end in this partition. The part before
    that, where the table was for the plan's writer, is never followed. Raises FormatError naming `path`.
    """
    folder, _, name = value.rpartition("/")
    if folder and (".." in folder.split("/") or (partition and not f"/{folder}".endswith(f"/{partition}"))):
        raise FormatError(f"path {value!r} does not lie in partition {partition!r}", path=path, remedy=remedy)
    return check_file_name(name, source=path)
