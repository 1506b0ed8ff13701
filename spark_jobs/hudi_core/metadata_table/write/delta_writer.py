"""Writes records to the metadata table under one instant: a log file in every file group concerned, and the
deltacommit.

The output depends on the records alone, so a repeated run with the same records continues after a crash: a block of the
instant in a file group is complete, as log files appear atomically. Where another attempt at the instant has other
records, with other file names, `write_alone` refuses its files. Memory: the records of all partitions as encoded cells,
and one log file, of staged blocks some group_content.LOG_BYTES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from hudi_core.codec.hashing import file_group_indexes
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.delete_columns import encode_natural_deletes
from hudi_core.codec.log.frames import encode_block
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, StorageExistsError
from hudi_core.metadata_table.index_definitions import IndexDefinition, load_index_definitions
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.read.file_group import (
    ROOT,
    LatestSlice,
    blocks_of,
    latest_slices,
    metadata_path,
    pending_bases,
)
from hudi_core.metadata_table.record import Datum, RecordEncoder, block_schema
from hudi_core.metadata_table.records.file_statistics import Record
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_commit import (
    complete_delta_commit,
    latest_schema,
    log_stat,
    profile_stat,
    write_delta_commit_inflight,
    write_delta_commit_start,
)
from hudi_core.metadata_table.write.staged_logs import StagedLog
from hudi_core.model.ids import WriteToken
from hudi_core.model.names import LogFileName, parse_data_file, parse_log_file
from hudi_core.model.stats import WriteStat
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of
from hudi_core.timeline.timeline import Timeline

Cells = list[tuple[bytes, bytes]]
Staged = Mapping[str, Sequence[StagedLog]]
"""By metadata partition."""
_RETRY = "run the instant again: it is rolled back in the metadata table first"
_ONE_FOR_ALL = WriteToken(0, 0, 0)
"""The token of every attempt that writes alone, where log files are named after their instant: a process that was
thought dead cannot add its file beside its successor's, as the name is taken. Else a log file's version is that fence:
the rollback between the two takes one.
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one file group gets: records, and keys that are deleted, in one log file, and one for each of the blocks
    that are `staged`.

    `written` are log files with blocks of the instant, of an earlier attempt.
    """

    place: LatestSlice
    cells: Cells
    deleted: list[str]
    staged: list[StagedLog]
    written: tuple[FileInfo, ...] = ()

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.cells) + sum(item.records for item in self.staged)


class DeltaWriter:
    """Writes deltacommits of the metadata table in `storage`; `token` makes the log files' names this attempt's own."""

    def __init__(self, storage: Storage, metadata_timeline: MetadataTimeline, token: WriteToken) -> None:
        self._storage = storage
        self._metadata_timeline = metadata_timeline
        self._token = token

    def write(self, instant: str, records: Mapping[str, Iterable[Record]], staged: Staged | None = None) -> None:
        """Writes and completes deltacommit `instant` with `records` by metadata partition; it may be empty. No effect
        when it is completed.

        `staged` are finished blocks; repeated ones must be equal, as those of a dead attempt may stay beside ours. The
        caller holds the table lock. No two records of a partition share a key. Raises StorageNotFoundError for a
        partition without file groups, before anything is written, and ConflictError for staged blocks that are not as
        they were written.
        """
        timeline = self._metadata_timeline.active.load()
        found = timeline.find(instant, Action.DELTA_COMMIT)
        if found is None or not found.is_completed:
            self._write(instant, records, timeline, found, self._token, staged=staged or {})

    def write_alone(self, instant: str, records: Mapping[str, Iterable[Record]], staged: Staged | None = None) -> None:
        """As `write`, where the metadata table may hold nothing else of `instant`: it is rolled back there before it is
        run again.

        A block counts for readers as soon as its instant completes on the data timeline, regardless of its writer.
        Raises ConflictError when another attempt's deltacommit, unfinished rollback or block is there, or appears
        meanwhile.
        """
        active = self._metadata_timeline.active
        timeline = active.load()
        found = timeline.find(instant, Action.DELTA_COMMIT)
        if found is not None:
            raise ConflictError(
                "another attempt's deltacommit is on the metadata table", path=active.path_of(found), remedy=_RETRY
            )
        rollback = pending_rollback_of(active, timeline, instant)
        if rollback is not None:
            raise ConflictError(
                f"rollback {rollback} of this instant is unfinished on the metadata table", path=ROOT, remedy=_RETRY
            )
        token = _ONE_FOR_ALL if self._metadata_timeline.features.log_name_has_delta_commit else self._token
        self._write(instant, records, timeline, None, token, alone=True, staged=staged or {})

    def _write(
        self,
        instant: str,
        records: Mapping[str, Iterable[Record]],
        timeline: Timeline,
        found: Instant | None,
        token: WriteToken,
        *,
        alone: bool = False,
        staged: Staged = MappingProxyType({}),
    ) -> None:
        active, json, metadata_instant = (
            self._metadata_timeline.active,
            self._metadata_timeline.features.json_commits,
            self._metadata_timeline.features.log_name_has_delta_commit,
        )
        schema = latest_schema(active, timeline)
        encoder = RecordEncoder(block_schema(schema))
        changes = {name: _encoded(encoder, items) for name, items in records.items()}
        parts = self._parts(timeline, instant, changes, resumed=alone or found is not None, staged=staged)
        if alone:
            self._refuse_written(parts)
        if found is None or found.state is State.REQUESTED:
            profile = _by_partition(
                (part.place.partition, (profile_stat(part.place, part.records, metadata_instant=metadata_instant),))
                for part in parts
            )
            begin = write_delta_commit_start if found is None else write_delta_commit_inflight
            begin(active, instant, profile, json=json)
        stats = _by_partition(
            (part.place.partition, self._write_part(part, instant, encoder.schema, token)) for part in parts
        )
        if alone:
            self._refuse_newcomers(timeline, instant, parts, stats)
        complete_delta_commit(
            active, instant, stats, schema, self._metadata_timeline.completion_time(instant), json=json
        )

    def _parts(
        self,
        timeline: Timeline,
        instant: str,
        changes: Mapping[str, tuple[Cells, list[str]]],
        *,
        resumed: bool,
        staged: Staged,
    ) -> list[_Part]:
        features = self._metadata_timeline.features
        pending = {} if features.log_name_has_delta_commit else pending_bases(self._metadata_timeline.active, timeline)
        parts = []
        for partition in dict.fromkeys((*changes, *staged)):
            cells, deleted = changes.get(partition, ([], []))
            if not cells and not deleted and not staged.get(partition):
                continue
            places = latest_slices(self._storage, timeline, partition, layout=features.layout, pending=pending)
            by_group: dict[int, _Part] = {}
            part_of = self._hashed_part(partition)
            for index, cell in zip(
                _groups([part_of(key.decode("utf-8")) for key, _ in cells], places), cells, strict=True
            ):
                _part(by_group, places, index).cells.append(cell)
            for index, key in zip(_groups([part_of(key) for key in deleted], places), deleted, strict=True):
                _part(by_group, places, index).deleted.append(key)
            numbers = {place.file_id: index for index, place in enumerate(places)}
            for item in staged.get(partition, ()):
                if item.file_id not in numbers:
                    raise ConflictError(
                        f"the file group {item.file_id} of the index {partition} is gone",
                        path=f"{ROOT}/{partition}",
                        remedy=_RETRY,
                    )
                _part(by_group, places, numbers[item.file_id]).staged.append(item)
            named = (
                list(self._named_after(instant, partition)) if resumed and features.log_name_has_delta_commit else []
            )
            for _, part in sorted(by_group.items()):
                parts.append(replace(part, written=self._written(part.place, instant, named)) if resumed else part)
        return parts

    def _hashed_part(self, partition: str) -> Callable[[str], str]:
        """The part of a key that is hashed to a file group: all of it, in a secondary index of version 2 the value
        alone.
        """
        found = registered(partition)
        return str if found is None else found.hashed_part(lambda: self._definition(partition))

    def _definition(self, partition: str) -> IndexDefinition | None:
        return load_index_definitions(self._storage, TableConfig.load(self._storage)).get(partition)

    def _written(self, place: LatestSlice, instant: str, named: Iterable[FileInfo]) -> tuple[FileInfo, ...]:
        if not self._metadata_timeline.features.log_name_has_delta_commit:
            return blocks_of(self._storage, place.logs, instant).live
        return tuple(info for info in named if info.name.startswith(f".{place.file_id}_{instant}.log."))

    def _named_after(self, instant: str, partition: str) -> Iterator[FileInfo]:
        """The files of a partition that `instant` wrote, by their names: logs of a deltacommit that is not completed
        belong to no slice.
        """
        for info in self._storage.list_files(f"{ROOT}/{partition}"):
            name = parse_data_file(info.name)
            if name is not None and name.instant == instant:
                yield info

    def _refuse_written(self, parts: Iterable[_Part]) -> None:
        for part in parts:
            if part.written:
                raise ConflictError(
                    "another attempt's block is in the metadata table", path=part.written[0].path, remedy=_RETRY
                )

    def _refuse_newcomers(
        self, timeline: Timeline, instant: str, parts: Sequence[_Part], stats: Mapping[str, Iterable[WriteStat]]
    ) -> None:
        """A log file that a process thought dead wrote late, between our look and our own files, must not count beside
        ours.
        """
        ours = {f"{ROOT}/{stat.path}" for items in stats.values() for stat in items}
        known = ours.union(info.path for part in parts for info in part.place.logs)
        for partition in stats:
            places = {part.place.file_id for part in parts if part.place.partition == partition}
            late = [info for info in self._logs_now(timeline, partition, instant, places) if info.path not in known]
            if not self._metadata_timeline.features.log_name_has_delta_commit:
                late = list(blocks_of(self._storage, late, instant).live)
            if late:
                raise ConflictError(
                    "another attempt's block appeared in the metadata table", path=late[0].path, remedy=_RETRY
                )

    def _logs_now(self, timeline: Timeline, partition: str, instant: str, file_ids: Set[str]) -> Iterator[FileInfo]:
        """The log files of some file groups' latest slices; where names carry the instant, all that `instant` wrote in
        the partition.
        """
        if self._metadata_timeline.features.log_name_has_delta_commit:
            yield from self._named_after(instant, partition)
            return
        for place in latest_slices(self._storage, timeline, partition, layout=self._metadata_timeline.features.layout):
            if place.file_id in file_ids:
                yield from place.logs

    def _write_part(self, part: _Part, instant: str, schema: str, token: WriteToken) -> tuple[WriteStat, ...]:
        """Of records an earlier attempt's log file has all; of staged blocks it may have some, which stay and say what
        ours say.
        """
        metadata_instant = self._metadata_timeline.features.log_name_has_delta_commit
        known = {info.path for info in part.place.logs}
        place = replace(part.place, logs=(*part.place.logs, *(info for info in part.written if info.path not in known)))
        stats = [
            self._stat(place, parse_log_file(info.name), info.size, len(part.cells), len(part.deleted))
            for info in part.written
        ]
        for block, records, deletions in self._blocks(part, instant, schema):
            name = place.next_log(token, instant if metadata_instant else None)
            path = metadata_path(name, place.partition)
            self._put(path, block)
            stats.append(self._stat(place, name, len(block), records, deletions))
            place = replace(place, logs=(*place.logs, FileInfo(path, len(block), 0.0)))
        return tuple(stats)

    def _stat(self, place: LatestSlice, name: LogFileName, size: int, records: int, deletions: int) -> WriteStat:
        return replace(
            log_stat(
                place, name, records, size, metadata_instant=self._metadata_timeline.features.log_name_has_delta_commit
            ),
            num_deletes=deletions,
        )

    def _blocks(self, part: _Part, instant: str, schema: str) -> Iterator[tuple[bytes, int, int]]:
        """The contents of the log files that are to be written, each with its records and deletions."""
        if (part.cells or part.deleted) and not part.written:
            yield self._encode(part, instant, schema), len(part.cells), len(part.deleted)
        for item in part.staged:
            block = self._storage.read(item.path)
            if len(block) != item.size:
                raise ConflictError(
                    f"{item.size} bytes were staged for the index {part.place.partition}", path=item.path, remedy=_RETRY
                )
            yield block, item.records, item.deletions

    def _encode(self, part: _Part, instant: str, schema: str) -> bytes:
        hudi_1 = self._metadata_timeline.features.hudi_1_log_headers
        headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
        block = b""
        if part.cells:
            content = write_hfile(part.cells, schema=schema, codec="GZ")
            block = encode_block(BlockType.HFILE_DATA, headers, content, hudi_1_headers=hudi_1)
        if part.deleted:
            keys = pa.array([key.encode() for key in part.deleted], pa.binary())
            content = encode_natural_deletes(keys, part.place.partition)
            block += encode_block(BlockType.DELETE, headers, content, hudi_1_headers=hudi_1)
        return block

    def _put(self, path: str, block: bytes) -> None:
        try:
            self._storage.create_exclusive(path, block)
        except StorageExistsError as error:
            if self._storage.read(path) != block:
                raise ConflictError(
                    "another attempt's block is in the metadata table", path=path, remedy=_RETRY
                ) from error


def _part(by_group: dict[int, _Part], places: Sequence[LatestSlice], index: int) -> _Part:
    return by_group.setdefault(index, _Part(places[index], [], [], []))


def _encoded(encoder: RecordEncoder, records: Iterable[Record]) -> tuple[Cells, list[str]]:
    """The cells of the records, and the keys that are deleted, both sorted."""
    deleted: list[str] = []

    def kept() -> Iterator[tuple[str, Datum]]:
        for key, datum in records:
            if datum is None:
                deleted.append(key)
            else:
                yield key, datum

    cells = encoder.cells(kept())
    return cells, sorted(deleted)


def _groups(keys: list[str], places: Sequence[LatestSlice]) -> list[int]:
    """The file group of each key, of which `keys` has what is hashed."""
    found: list[int] = file_group_indexes(keys, len(places)).tolist()
    return found


def _by_partition(items: Iterable[tuple[str, tuple[WriteStat, ...]]]) -> dict[str, tuple[WriteStat, ...]]:
    found: dict[str, tuple[WriteStat, ...]] = {}
    for partition, stats in items:
        found[partition] = (*found.get(partition, ()), *stats)
    return found
