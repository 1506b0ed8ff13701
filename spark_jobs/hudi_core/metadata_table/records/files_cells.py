"""Large records of the `files` partition, decoded entry by entry without a dict for each: 1 µs a file where the codec
and the checks take 4 µs.

A map's entries lie one behind the other, each as long as its name, so the way from one to the next is a loop in Python;
sizes and marks are then read all at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from hudi_core.codec.avro.column_walk import PADDING, varints
from hudi_core.codec.binary import Reader
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.record import FileEntry, FilesRecord, RecordType

LEAST_BYTES: Final = 4096
"""Bytes of a value from which on this pays."""
_FILES: Final = "filesystemMetadata"
_ENTRY: Final = [("size", "long"), ("isDeleted", "boolean")]
_CONTINUES: Final = 0x80
_new_entry = partial(tuple.__new__, FileEntry)


def files_record_of_cell(schema: str, key: bytes, value: bytes) -> FilesRecord | None:
    """The record of a cell whose value `schema` encodes; None where record.MetadataCodec and record.files_record have
    to read it or to refuse it.
    """
    form = _form(schema)
    if form is None:
        return None
    try:
        return _record(form, key, value)
    except (CorruptFileError, UnicodeDecodeError, IndexError, ValueError):
        # Not swallowed: the caller reads the same bytes by the codec, which names the fault.
        return None


def _record(form: tuple[tuple[str, ...], int], key: bytes, value: bytes) -> FilesRecord | None:
    before, behind = form
    source = Reader(value, _FILES)
    number = -1
    for kind in before:
        if kind == "text":
            source.skip(source.zigzag())
        elif kind == "int":
            number = source.zigzag()
        elif branch := source.zigzag():
            if branch != 1:
                return None
            source.skip(source.zigzag())
    if number not in (RecordType.PARTITIONS, RecordType.FILES) or source.zigzag() != 1:
        return None
    count = source.zigzag()
    names, ends, at = _entries(value, source.position, count)
    # One block of entries, an empty one, and null for every field behind.
    if value[at:] != bytes(1 + behind):
        return None
    octets = np.frombuffer(value + bytes(PADDING), dtype=np.uint8)
    sizes, after = varints(octets, np.array(ends, dtype=np.int64))
    marks = octets[after]
    if (marks > 1).any() or (number == RecordType.FILES and ((sizes <= 0) & (marks == 0)).any()):
        return None
    entries: Mapping[str, FileEntry] = dict(
        zip(names, map(_new_entry, zip(sizes.tolist(), marks.astype(bool).tolist(), strict=True)), strict=True)
    )
    return FilesRecord(key.decode("utf-8"), RecordType(number), entries)


def _entries(data: bytes, at: int, count: int) -> tuple[list[str], list[int], int]:
    """The names of a block's entries, where these end, and where the last entry does. Raises IndexError behind the
    data, ValueError.
    """
    names, ends = [], []
    for _ in range(count):
        length = data[at]
        at += 1
        if length >= _CONTINUES:
            more = data[at]
            at += 1
            length = (length & 0x7F) | more << 7
            if more >= _CONTINUES:
                raise ValueError("a name of 8 KiB or more")
        if length & 1:
            raise ValueError("a negative length")
        end = at + (length >> 1)
        names.append(data[at:end])
        ends.append(end)
        at = end
        while data[at] >= _CONTINUES:
            at += 1
        at += 2
    return list(map(bytes.decode, names)), ends, at


@lru_cache(maxsize=16)
def _form(text: str) -> tuple[tuple[str, ...], int] | None:
    """What comes before the map, and how many fields that may be null behind it; None for a schema of another form than
    Hudi's.
    """
    try:
        fields = json.loads(text)["fields"]
        at = next(index for index, child in enumerate(fields) if child["name"] == _FILES)
        before = tuple(_field_form(child["type"]) for child in fields[:at])
        null, files = fields[at]["type"]
        entry = [(child["name"], child["type"]) for child in files["values"]["fields"]]
        behind = fields[at + 1 :]
        known = null == "null" and files["type"] == "map" and entry == _ENTRY and before.count("int") == 1
        if (
            known
            and "" not in before
            and all(isinstance(child["type"], list) and child["type"][0] == "null" for child in behind)
        ):
            return before, len(behind)
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError):
        # Not swallowed: the codec says what is wrong with the schema.
        return None
    return None


def _field_form(schema: Any) -> str:
    """`text`, `int`, `nullable text`, or nothing for what is not read here."""
    if isinstance(schema, list):
        return "nullable text" if len(schema) == 2 and schema[0] == "null" and _field_form(schema[1]) == "text" else ""
    name = schema["type"] if isinstance(schema, dict) else schema
    return {"string": "text", "int": "int"}.get(name, "")
