"""The metadata table's records in Avro and their schemas (HoodieMetadataRecord, HoodieMetadataPayload). A record is an
HFile cell: its row is the key, its value an Avro datum with blank `key` and null `_hoodie_*` fields.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from importlib import resources
from operator import itemgetter
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import add_meta_fields, without_fields
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.config.versions import V6, V8, TableVersion
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.model.names import META_FIELDS

ALL_PARTITIONS = "__all_partitions__"
"""The key of the record that lists the partitions (HoodieTableMetadata.RECORDKEY_PARTITION_LIST)."""
_SCHEMAS: Final = {V6.number: "schema_v6.avsc", V8.number: "schema_v8.avsc"}
_LATEST_SCHEMA: Final = "schema_v9.avsc"
T = TypeVar("T")
GONE: Final = b""
"""The encoded value of a deleted key in exchanges; it becomes an entry of a DELETE block. No record is empty."""


class RecordType(IntEnum):
    """The `type` of a record (MetadataPartitionType). Expression indexes have records of statistics or filters."""

    PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTER = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


class FileEntry(NamedTuple):
    """A file's size in bytes, or the mark that it was deleted. A tuple, since records hold thousands of entries."""

    size: int
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class FilesRecord:
    """The content of one `files` record: the partitions under ALL_PARTITIONS, or the files of the partition `key`."""

    key: str
    type: RecordType
    entries: Mapping[str, FileEntry]


class RecordRules(ABC, Generic[T]):
    """How a record of one partition type is decoded, and how two records of one key merge (HoodieMetadataPayload)."""

    keyless: ClassVar[bool] = False
    """Whether a record depends on its datum only, not on its key: then each distinct datum is decoded once."""
    by_cell: ClassVar[bool] = False
    """Whether the type has a decode_cell, which is faster."""

    @abstractmethod
    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> T:
        """Returns the record of an Avro datum. Raises CorruptFileError with `path` when it has another type."""

    def decode_cell(self, schema: str, key: bytes, value: bytes) -> T | None:
        """Returns the record of a cell whose value `schema` encodes; None where `decode` must read or refuse it."""
        return None

    def merge(self, older: T, newer: T, *, path: str) -> T:
        """Returns the merged record, by default the newer record. `path` is the file of the newer record."""
        return newer


class MetadataCodec:
    """Decodes cells of every type of record, by the schema of their block or file."""

    def __init__(self, schema_text: str, *, path: str) -> None:
        """Reads the schema. Raises CorruptFileError with `path` when the text is no Avro schema."""
        try:
            self._codec = _codec_of(schema_text)
        except (json.JSONDecodeError, FormatError, RecursionError) as error:
            raise CorruptFileError(
                f"the schema of the metadata records is not an Avro schema ({error})", path=path
            ) from error
        self._path = path

    def decode(self, key: bytes, value: bytes) -> tuple[str, dict[str, Any]]:
        """Returns a cell's key and its datum. Raises CorruptFileError when the value does not decode to a record."""
        datum = self._codec.decode(value, path=self._path)
        name = Reader(key, self._path).utf8(len(key))
        if not isinstance(datum, dict):
            raise CorruptFileError(f"metadata record {name!r} is not an Avro record", path=self._path)
        return name, datum


def files_record(key: str, datum: Mapping[str, Any], *, path: str) -> FilesRecord:
    """Returns a datum as a record of the `files` partition. Raises CorruptFileError when it has another type."""
    number, files = datum.get("type"), datum.get("filesystemMetadata")
    if number not in (RecordType.PARTITIONS, RecordType.FILES) or not (files is None or isinstance(files, dict)):
        raise CorruptFileError(f"metadata record {key!r} is of type {number!r}, not a list of files", path=path)
    entries = _entries(key, files or {}, path)
    if number == RecordType.FILES:
        # Hudi refuses files without a size when it merges records (HoodieMetadataPayload.validatePayload).
        for file, entry in entries.items():
            if entry.size <= 0 and not entry.is_deleted:
                raise CorruptFileError(
                    f"metadata record {key!r} gives {file!r} a size of {entry.size} bytes", path=path
                )
    return FilesRecord(key, RecordType(number), entries)


def _entries(key: str, files: Mapping[str, Any], path: str) -> dict[str, FileEntry]:
    """Returns the entries of a record. They are checked in one step: a partition may have thousands of files."""
    try:
        sizes, marks = (list(map(itemgetter(name), files.values())) for name in ("size", "isDeleted"))
    except (KeyError, TypeError):
        sizes, marks = [], [None]
    if set(map(type, sizes)) <= {int} and set(map(type, marks)) <= {bool}:
        return dict(zip(files, map(FileEntry, sizes, marks), strict=True))
    broken = next(
        file
        for file, info in files.items()
        if not isinstance(info, dict) or type(info.get("size")) is not int or type(info.get("isDeleted")) is not bool
    )
    raise CorruptFileError(f"metadata record {key!r} has a broken entry for {broken!r}", path=path)


@lru_cache(maxsize=16)
def _codec_of(text: str) -> DatumCodec:
    return DatumCodec(json.loads(text))


@lru_cache(maxsize=4)
def stored_schema(version: TableVersion) -> str:
    """Returns the schema of log blocks and base files: the `_hoodie_*` columns first, without Hudi's doc texts."""
    file = resources.files("hudi_core.metadata_table").joinpath(_SCHEMAS.get(version.number, _LATEST_SCHEMA))
    return file.read_text(encoding="utf-8").strip()


@lru_cache(maxsize=4)
def commit_schema(version: TableVersion) -> str:
    schema = without_fields(json.loads(stored_schema(version)), META_FIELDS)
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def files_datum(record: FilesRecord) -> dict[str, Any]:
    entries = {name: {"size": entry.size, "isDeleted": entry.is_deleted} for name, entry in record.entries.items()}
    return {"type": int(record.type), "filesystemMetadata": entries}


@dataclass(frozen=True, slots=True)
class FileDatum:
    """A datum that differs between files only in the name: `template`, with `name` in the place of FILE_NAME. Without
    it fastavro takes 33 µs for each of a million records, most of it to choose branches of unions.
    """

    template: Mapping[str, Any]
    name: str


FILE_NAME = "\0file name\0"
Datum = Mapping[str, Any] | FileDatum


class RecordEncoder:
    """Encodes records by the schema that their log block names: the table's writers know this schema."""

    def __init__(self, text: str) -> None:
        self.schema = text
        try:
            self._codec = _codec_of(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise FormatError(f"the schema of the metadata records is not an Avro schema ({error})") from error

    def cells(self, records: Iterable[tuple[str, Datum]]) -> list[tuple[bytes, bytes]]:
        """Returns the cells of an HFile block, sorted by key bytes. Raises ValueError when two records share a key."""
        items: dict[bytes, bytes] = {}
        known: dict[int, tuple[Mapping[str, Any], bytes, bytes]] = {}
        for name, datum in records:
            key = name.encode("utf-8")
            if key in items:
                raise ValueError(f"two metadata records have the key {name!r}")
            items[key] = self._spliced(datum, known) if isinstance(datum, FileDatum) else self._encode(datum)
        return sorted(items.items())

    def value(self, datum: Mapping[str, Any]) -> bytes:
        return self._encode({name: item for name, item in datum.items() if name not in META_FIELDS})

    def _encode(self, datum: Mapping[str, Any]) -> bytes:
        return self._codec.encode({**datum, "key": ""})

    def _spliced(self, datum: FileDatum, known: dict[int, tuple[Mapping[str, Any], bytes, bytes]]) -> bytes:
        """Returns the encoded datum. `known` keeps each template, by identity, with the bytes around the name."""
        found = known.get(id(datum.template))
        if found is None:
            before, _, after = self._encode(datum.template).partition(_avro_text(FILE_NAME))
            found = known[id(datum.template)] = (datum.template, before, after)
        return found[1] + _avro_text(datum.name) + found[2]


def _avro_text(text: str) -> bytes:
    data = text.encode("utf-8")
    return encode_zigzag(len(data)) + data


def block_schema(commit_schema: str) -> str:
    """Returns the commits' schema with the `_hoodie_*` columns. Raises FormatError for a text that is no schema."""
    try:
        schema = add_meta_fields(json.loads(commit_schema))
        return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            f"the schema of the metadata table's commits is not that of records ({type(error).__name__}: {error})"
        ) from error
