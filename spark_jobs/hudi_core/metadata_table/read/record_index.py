"""Where the row of a record key is: records of `record_index` (HoodieRecordIndexInfo;
HoodieTableMetadataUtil.getLocationFromRecordIndexInfo).
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from hudi_core.errors import ConfigError, CorruptFileError, TimelineError
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.read.partition import MetadataPartition, check_numbers
from hudi_core.metadata_table.record import RecordType
from hudi_core.timeline.instant_time import of_epoch_millis

_UUID_ENCODING: Final = 0
_NO_FILE_INDEX: Final = -1
_MASK: Final = (1 << 64) - 1
_MAX_MILLIS: Final = 253402300799999
"""The last millisecond of the year 9999."""
_PARTITIONED = re.compile(r"record-index-(?P<partition>[^-]*)-\d{4,}-\d+\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """Where a row is: partition path, file group, and the commit that first wrote it (its instant time, in the table's
    zone).
    """

    partition: str
    file_id: str
    instant: str


class RecordIndexRules:
    """group_reader.RecordRules of `record_index`. `zone` is the table's zone of instant times
    (TableConfig.timezone).
    """

    keyless = True

    def __init__(self, zone: str) -> None:
        self._zone = zone
        self._instants: dict[int, str] = {}

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> RecordLocation:
        """The location in a datum; raises CorruptFileError naming `path`."""
        body = datum.get("recordIndexMetadata")
        if datum.get("type") != RecordType.RECORD_INDEX or not isinstance(body, dict):
            raise CorruptFileError(
                f"metadata record {key!r} is of type {datum.get('type')!r}, not a record's location", path=path
            )
        try:
            file_id = body["fileId"] if body["fileIdEncoding"] != _UUID_ENCODING else _uuid_file_id(body)
            return RecordLocation(body["partitionName"], file_id, self._instant(body["instantTime"]))
        except (KeyError, TypeError, TimelineError) as error:
            raise CorruptFileError(f"metadata record {key!r} holds no whole location ({error})", path=path) from error

    def merge(self, older: RecordLocation, newer: RecordLocation, *, path: str) -> RecordLocation:
        """The newer one."""
        return newer

    def _instant(self, millis: int) -> str:
        found = self._instants.get(millis)
        if found is None:
            if not 0 <= millis <= _MAX_MILLIS:
                raise TimelineError(f"{millis} milliseconds are no instant")
            found = self._instants[millis] = of_epoch_millis(millis, self._zone)
        return found


def _uuid_file_id(body: dict[str, Any]) -> str:
    number = (body["fileIdHighBits"] & _MASK) << 64 | body["fileIdLowBits"] & _MASK
    text = str(uuid.UUID(int=number))
    return text if body["fileIndex"] == _NO_FILE_INDEX else f"{text}-{body['fileIndex']}"


class RecordIndex:
    """The index, global or (from version 9 on) one per data partition, whose file groups carry that partition's
    name.
    """

    def __init__(self, folder: str, groups: Sequence[GroupReader[RecordLocation]], *, is_remote: bool = False) -> None:
        """`is_remote` as MetadataPartition. Raises CorruptFileError when there is no file group, or one of a global
        index is not there.

        Those of a new data partition come while others read.
        """
        self._global: MetadataPartition[RecordLocation] | None = None
        self._by_partition: dict[str, MetadataPartition[RecordLocation]] = {}
        found: dict[str, list[GroupReader[RecordLocation]]] = defaultdict(list)
        for group in groups:
            match = _PARTITIONED.match(group.file_id)
            if match is not None:
                found[_unescaped(match["partition"])].append(group)
        if not found:
            check_numbers(folder, groups)
            self._global = MetadataPartition(RECORD_INDEX, folder, groups, is_remote=is_remote)
        elif sum(map(len, found.values())) != len(groups):
            raise CorruptFileError(
                "the record index holds file groups of the global and of the partitioned form", path=folder
            )
        else:
            self._by_partition = {
                name: MetadataPartition(RECORD_INDEX, folder, parts, is_remote=is_remote)
                for name, parts in found.items()
            }

    @property
    def is_partitioned(self) -> bool:
        """Whether keys are unique per data partition only."""
        return self._global is None

    @property
    def parts(self) -> dict[str | None, MetadataPartition[RecordLocation]]:
        """The index's file groups: of a global index all of them, under None, else those of each data partition."""
        found: dict[str | None, MetadataPartition[RecordLocation]] = (
            {None: self._global} if self._global is not None else {}
        )
        found.update(self._by_partition)
        return found

    def locations(self, keys: Iterable[str], partition: str | None = None) -> dict[str, tuple[RecordLocation, ...]]:
        """The locations of the rows of existing `keys`, each file group read once; in one data partition, or in all.

        A global index gives one location per key, a partitioned one up to one per data partition. Raises ConfigError
        for the empty text, which is no key.
        """
        distinct = dict.fromkeys(keys)
        if "" in distinct:
            raise ConfigError("the empty text is no record key")
        if self._global is not None and partition is None:
            return _alone(self._global.lookup(distinct))
        # Each part sorts its keys: once is enough.
        requirements = sorted(distinct)
        found: dict[str, tuple[RecordLocation, ...]] = {}
        for part in self._parts(partition):
            for key, location in part.lookup(requirements).items():
                if partition is None or location.partition == partition:
                    found[key] = (*found.get(key, ()), location)
        return found

    def all(self) -> Iterator[tuple[str, RecordLocation]]:
        """Every key and location, file group by file group."""
        for part in self._parts(None):
            yield from part.all()

    def _parts(self, partition: str | None) -> list[MetadataPartition[RecordLocation]]:
        if self._global is not None:
            return [self._global]
        if partition is not None:
            return [self._by_partition[partition]] if partition in self._by_partition else []
        return [self._by_partition[name] for name in sorted(self._by_partition)]


def _unescaped(text: str) -> str:
    """PartitionPathEncodeUtils.unescapePathName; a lone or broken escape stays as it is."""
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape") if "%" in text else text


def _alone(found: Mapping[str, RecordLocation]) -> dict[str, tuple[RecordLocation, ...]]:
    """Each location by itself, one tuple for all keys of it: the garbage collector looks at 100,000 of them again and
    again.
    """
    made: dict[int, tuple[RecordLocation, ...]] = {}
    return {
        key: made.get(id(location)) or made.setdefault(id(location), (location,)) for key, location in found.items()
    }
