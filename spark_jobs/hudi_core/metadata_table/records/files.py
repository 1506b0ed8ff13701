"""The records of `files` for all actions, and their merge (HoodieTableMetadataUtil, HoodieMetadataPayload)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from hudi_core.codec.avro.column_walk import PADDING, varints
from hudi_core.codec.binary import Reader
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.metadata_table.record import (
    ALL_PARTITIONS,
    FileEntry,
    FilesRecord,
    RecordRules,
    RecordType,
    files_record,
)
from hudi_core.model.partition import NON_PARTITIONED, join
from hudi_core.timeline.actions.write_stats import WriteStat

_GONE = FileEntry(0, is_deleted=True)
LEAST_BYTES: Final = 4096
"""For values of at least so many bytes files_record_of_cell is faster."""
_FILES: Final = "filesystemMetadata"
_ENTRY: Final = [("size", "long"), ("isDeleted", "boolean")]
_CONTINUES: Final = 0x80
_new_entry = partial(tuple.__new__, FileEntry)


def partition_key(partition: str) -> str:
    """Returns a partition's path, or `.` for a table without partitions."""
    return partition or NON_PARTITIONED


def partition_of_key(key: str) -> str:
    return "" if key == NON_PARTITIONED else key


def commit_records(stats: Mapping[str, Sequence[WriteStat]]) -> list[FilesRecord]:
    """Returns the records of a commit, from its write stats by partition path (convertMetadataToFilesPartitionRecords):
    the record of all partitions, and a record of the written files of each partition, change-data files included. Of
    several stats the largest size counts. Raises FormatError for a path outside its partition or a size below 1.
    """
    files: dict[str, dict[str, int]] = {}
    for partition, partition_stats in stats.items():
        sizes = files[partition] = {}
        for stat in partition_stats:
            name = _file_name(partition, stat.path)
            sizes[name] = max(stat.file_size_in_bytes, sizes.get(name, 0))
            for path, size in stat.cdc_stats:
                sizes[_file_name(partition, path)] = size
    return list(listing_records(files))


def rollback_records(
    appended: Mapping[str, Mapping[str, int]], deleted: Mapping[str, Iterable[str]] | None = None
) -> list[FilesRecord]:
    """Returns the records of a rollback: the log files that it appended (name to size) and the files that it deleted,
    by partition path. Hudi 0.15 has no deleted files here, since it rolls the failed deltacommit back
    (convertMetadataToRollbackRecords); a caller without `deleted` must do the same. Raises FormatError when a file is
    in both.
    """
    gone = deleted or {}
    return [
        _files_record(partition, appended.get(partition, {}), gone.get(partition, ()))
        for partition in sorted({*appended, *gone})
    ]


def listing_records(files: Mapping[str, Mapping[str, int]]) -> Iterator[FilesRecord]:
    """Yields the record of all partitions, and a record of each partition's files (initializeFilesPartition). Raises
    FormatError for a size below 1.
    """
    yield FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, dict.fromkeys(map(partition_key, files), FileEntry(0)))
    for partition, sizes in files.items():
        yield _files_record(partition, sizes, ())


def deletion_records(deleted: Mapping[str, Iterable[str]], dropped_partitions: Iterable[str]) -> list[FilesRecord]:
    """Returns the records of deleted files and of deleted partitions, in the form of a clean's records
    (convertMetadataToFilesPartitionRecords(HoodieCleanMetadata)). For a deleted partition Hudi 1.2 writes a delete,
    which has the same effect.
    """
    records = [_files_record(partition, {}, names) for partition, names in sorted(deleted.items())]
    gone = sorted(dropped_partitions)
    if gone:
        entries = dict.fromkeys(map(partition_key, gone), _GONE)
        records.append(FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, entries))
    return records


def merge(older: FilesRecord, newer: FilesRecord, *, path: str) -> FilesRecord:
    """Returns the merged record of one key (HoodieMetadataPayload.combineFileSystemMetadata); `path` is the file of
    `newer`. A deletion and the older live entry remove each other. A deletion without an older entry stays, since the
    base file may have an entry. Of two live entries the larger size counts, and a live entry replaces a deletion.
    Raises CorruptFileError when the types differ.
    """
    if older.key != newer.key or older.type is not newer.type:
        raise CorruptFileError(
            f"metadata records {older.key!r} ({older.type.name}) and {newer.key!r} ({newer.type.name}) do not merge",
            path=path,
        )
    entries = dict(older.entries)
    for name, entry in newer.entries.items():
        previous = entries.get(name)
        if previous is None:
            entries[name] = entry
        elif not entry.is_deleted:
            entries[name] = FileEntry(max(entry.size, previous.size))
        elif previous.is_deleted:
            entries[name] = entry
        else:
            del entries[name]
    return FilesRecord(newer.key, newer.type, entries)


class FilesRules(RecordRules[FilesRecord]):
    by_cell = True

    def decode_cell(self, schema: str, key: bytes, value: bytes) -> FilesRecord | None:
        return files_record_of_cell(schema, key, value) if len(value) >= LEAST_BYTES else None

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> FilesRecord:
        return files_record(key, datum, path=path)

    def merge(self, older: FilesRecord, newer: FilesRecord, *, path: str) -> FilesRecord:
        return merge(older, newer, path=path)


def live_entries(record: FilesRecord | None) -> dict[str, int]:
    return (
        {} if record is None else {name: entry.size for name, entry in record.entries.items() if not entry.is_deleted}
    )


def _files_record(partition: str, sizes: Mapping[str, int], deleted: Iterable[str]) -> FilesRecord:
    entries = {name: FileEntry(size) for name, size in sizes.items()}
    for name, size in sizes.items():
        if size <= 0:
            raise FormatError(
                f"a file of {size} bytes cannot be listed in the metadata table", path=join(partition, name)
            )
    for name in deleted:
        if name in entries:
            raise FormatError("a rollback cannot append to a file and delete it", path=join(partition, name))
        entries[name] = _GONE
    return FilesRecord(partition_key(partition), RecordType.FILES, entries)


def _file_name(partition: str, path: str) -> str:
    """Returns the file's name within its partition (FSUtils.getFileName). Raises FormatError for a path elsewhere."""
    prefix = f"{partition}/" if partition else ""
    name = path[len(prefix) :]
    if not path.startswith(prefix) or not name or "/" in name:
        raise FormatError(f"write stat of partition {partition!r} names a file elsewhere", path=path)
    return name


def files_record_of_cell(schema: str, key: bytes, value: bytes) -> FilesRecord | None:
    """Returns the record of a large cell, decoded without a dict for each entry: 1 µs a file, where the codec and the
    checks take 4 µs. Returns None where codec and checks have to read or refuse the cell. A loop in Python goes from
    one entry of the map to the next; sizes and marks are then read in one step.
    """
    form = _form(schema)
    if form is None:
        return None
    try:
        return _record(form, key, value)
    except (CorruptFileError, UnicodeDecodeError, IndexError, ValueError):
        # The error is not lost: the caller reads the same bytes by the codec, which names the fault.
        return None


def _record(form: tuple[tuple[str, ...], int], key: bytes, value: bytes) -> FilesRecord | None:
    before, behind = form
    source = Reader(value, _FILES)
    number = -1
    for field in before:
        if field == "text":
            source.skip(source.zigzag())
        elif field == "int":
            number = source.zigzag()
        elif branch := source.zigzag():
            if branch != 1:
                return None
            source.skip(source.zigzag())
    if number not in (RecordType.PARTITIONS, RecordType.FILES) or source.zigzag() != 1:
        return None
    count = source.zigzag()
    names, ends, at = _entries(value, source.position, count)
    # After the block of entries come an empty block, and null for every later field.
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
    """Returns a block's names, the ends of its entries, and the last end. Raises IndexError where data end before."""
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
    """Returns the forms of the fields before the map, and the number of nullable fields after it; None for another form
    than Hudi's.
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
        # The error is not lost: the codec says what is wrong with the schema.
        return None
    return None


def _field_form(schema: Any) -> str:
    """Returns `text`, `int` or `nullable text`; an empty text for a type that this module does not read."""
    if isinstance(schema, list):
        return "nullable text" if len(schema) == 2 and schema[0] == "null" and _field_form(schema[1]) == "text" else ""
    name = schema["type"] if isinstance(schema, dict) else schema
    return {"string": "text", "int": "int"}.get(name, "")
