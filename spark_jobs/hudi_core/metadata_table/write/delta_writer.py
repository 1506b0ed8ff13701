"""Writes records to the metadata table under one instant: a deltacommit and a log file per file group with records.

The output depends only on the records, so a repeated run continues after a crash: a block of the instant in a file
group is complete, since log files appear atomically. Where another attempt has other records, with other file names,
`write_alone` refuses its files. Memory: the records of all partitions as encoded cells, and their log files, or
one log file where blocks are staged (some row_exchange.LOG_BYTES).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from hudi_core.codec.hashing import file_group_indexes
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.delete_columns import encode_natural_deletes
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, StorageExistsError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.read.file_group import ROOT, LatestSlice, blocks_of, data_files, metadata_path
from hudi_core.metadata_table.record import Datum, RecordEncoder, block_schema
from hudi_core.metadata_table.records.file_statistics import Record
from hudi_core.metadata_table.timeline import (
    MetadataTimeline,
    delta_commit_content,
    latest_schema,
    log_stat,
    profile_stat,
)
from hudi_core.metadata_table.write.staged_logs import StagedLog
from hudi_core.model.names import WriteToken, parse_log_file
from hudi_core.storage.base import FileInfo
from hudi_core.storage.overlapped import look_ahead, overlapped
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of
from hudi_core.timeline.timeline import Timeline

Cells = list[tuple[bytes, bytes]]
Staged = Mapping[str, Sequence[StagedLog]]
_NOTHING: Staged = MappingProxyType({})
_OTHERS_BLOCK = "another attempt's block is in the metadata table"
_ONE_FOR_ALL = WriteToken(0, 0, 0)
"""The token of every attempt that writes alone, where log files are named after their instant: a process that was
presumed dead cannot add its file, since the name is taken. In layout 1 the version of a log file is the fence.
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """The input of one file group. `written` are an earlier attempt's log files with blocks of the instant."""

    place: LatestSlice
    cells: Cells = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    staged: list[StagedLog] = field(default_factory=list)
    written: tuple[FileInfo, ...] = ()

    @property
    def records(self) -> int:
        return len(self.cells) + sum(item.records for item in self.staged)


@dataclass(frozen=True, slots=True)
class DeltaWriter:
    """Writes deltacommits. `token` makes the log files' names unique to this attempt."""

    metadata_timeline: MetadataTimeline
    token: WriteToken

    def write(self, instant: str, records: Mapping[str, Iterable[Record]], staged: Staged = _NOTHING) -> None:
        """Writes and completes deltacommit `instant` with `records` by metadata partition. No effect when the
        deltacommit is completed. `staged` are finished blocks; when repeated, they must be equal, since blocks of a
        dead attempt may stay beside ours. The caller holds the table lock. No two records of a partition share a key.
        First raises StorageNotFoundError without file groups; ConflictError for changed staged blocks.
        """
        timeline = self.metadata_timeline.active.load()
        found = timeline.find(instant, Action.DELTA_COMMIT)
        if found is None or not found.is_completed:
            self._write(instant, records, staged, timeline, found, self.token)

    def write_alone(
        self,
        instant: str,
        records: Mapping[str, Iterable[Record]],
        staged: Staged = _NOTHING,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Writes deltacommit `instant` like `write`, where the metadata table may have nothing else of the instant:
        before it is run again, the instant is rolled back there. A block of any writer counts for readers as soon as
        its instant completes on the data timeline. Where the data timeline no longer has the instant, the block counts
        as soon as the deltacommit completes here: right before that, `check` raises if the instant may have been rolled
        back. Raises ConflictError when another attempt's deltacommit, unfinished rollback or block is there or appears.
        """
        timeline = self.metadata_timeline.active.load()
        found = timeline.find(instant, Action.DELTA_COMMIT)
        if found is not None:
            raise _conflict(
                "another attempt's deltacommit is on the metadata table", self.metadata_timeline.active.path_of(found)
            )
        rollback = pending_rollback_of(self.metadata_timeline.active, timeline, instant)
        if rollback is not None:
            raise _conflict(f"rollback {rollback} of this instant is unfinished on the metadata table", ROOT)
        token = _ONE_FOR_ALL if self._by_instant else self.token
        self._write(instant, records, staged, timeline, None, token, check)

    @property
    def _by_instant(self) -> bool:
        """Whether log files are named after the instant that writes them."""
        return self.metadata_timeline.features.log_name_has_delta_commit

    def _write(
        self,
        instant: str,
        records: Mapping[str, Iterable[Record]],
        staged: Staged,
        timeline: Timeline,
        found: Instant | None,
        token: WriteToken,
        check_alone: Callable[[], None] | None = None,
    ) -> None:
        alone = check_alone is not None
        schema = latest_schema(self.metadata_timeline.active, timeline)
        encoder = RecordEncoder(block_schema(schema))
        changes = {name: _encoded(encoder, items) for name, items in records.items()}
        parts = self._parts(timeline, changes, staged)
        if alone or found is not None:
            parts = self._with_written(parts, instant)
        if alone:
            for path in (info.path for part in parts for info in part.written):
                raise _conflict(_OTHERS_BLOCK, path)
        if found is None:
            self.metadata_timeline.active.create_requested(instant, Action.DELTA_COMMIT)
        if found is None or found.state is State.REQUESTED:
            profile = _by_partition(
                (part, [profile_stat(part.place, part.records, metadata_instant=self._by_instant)]) for part in parts
            )
            content = delta_commit_content(self.metadata_timeline, profile)
            self.metadata_timeline.active.to_inflight(instant, Action.DELTA_COMMIT, content)
        stats = _by_partition(zip(parts, self._write_parts(parts, instant, encoder.schema, token), strict=True))
        content = delta_commit_content(self.metadata_timeline, stats, schema)
        if check_alone is not None:
            checks = (partial(self._refuse_newcomers, timeline, instant, parts, stats), check_alone)
            overlapped(self.metadata_timeline.storage, checks)
        self.metadata_timeline.complete(instant, Action.DELTA_COMMIT, content)

    def _parts(self, timeline: Timeline, changes: Mapping[str, tuple[Cells, list[str]]], staged: Staged) -> list[_Part]:
        pending = self.metadata_timeline.pending_bases(timeline)
        self._list_ahead((*changes, *staged))
        parts: list[_Part] = []
        for partition in dict.fromkeys((*changes, *staged)):
            cells, deleted = changes.get(partition, ([], []))
            blocks = staged.get(partition, ())
            if not cells and not deleted and not blocks:
                continue
            places = self.metadata_timeline.latest_slices(timeline, partition, pending)
            groups = [_Part(place) for place in places]
            part_of = self._hashed_part(partition)
            hashed = [*(part_of(key.decode("utf-8")) for key, _ in cells), *map(part_of, deleted)]
            indexes = file_group_indexes(hashed, len(places)).tolist()
            for index, cell in zip(indexes, cells, strict=False):
                groups[index].cells.append(cell)
            for index, key in zip(indexes[len(cells) :], deleted, strict=True):
                groups[index].deleted.append(key)
            by_id = {part.place.file_id: part for part in groups}
            for block in blocks:
                if block.file_id not in by_id:
                    message = f"the file group {block.file_id} of the index {partition} is gone"
                    raise _conflict(message, f"{ROOT}/{partition}")
                by_id[block.file_id].staged.append(block)
            parts += [part for part in groups if part.cells or part.deleted or part.staged]
        return parts

    def _hashed_part(self, partition: str) -> Callable[[str], str]:
        found = registered(partition)
        if found is None:
            return str
        return found.hashed_part(
            lambda: load_index_definitions(
                self.metadata_timeline.storage, TableConfig.load(self.metadata_timeline.storage)
            ).get(partition)
        )

    def _with_written(self, parts: Iterable[_Part], instant: str) -> list[_Part]:
        """Returns the parts with `written`: the log files in which they have blocks of the instant."""
        if not self._by_instant:
            return [
                replace(part, written=blocks_of(self.metadata_timeline.storage, part.place.logs, instant).live)
                for part in parts
            ]
        partitions = {part.place.partition for part in parts}
        named = [info for name in sorted(partitions) for info in self._named_after(instant, name)]
        found = {f"{ROOT}/{part.place.partition}/.{part.place.file_id}_{instant}.log.": part for part in parts}
        return [
            replace(part, written=tuple(info for info in named if info.path.startswith(start)))
            for start, part in found.items()
        ]

    def _named_after(self, instant: str, partition: str) -> Iterator[FileInfo]:
        found = data_files(self.metadata_timeline.storage.list_files(f"{ROOT}/{partition}"))
        return (info for info, name in found if name.instant == instant)

    def _list_ahead(self, partitions: Iterable[str]) -> None:
        storage = self.metadata_timeline.storage
        look_ahead(storage, *(partial(storage.list_files, f"{ROOT}/{name}") for name in dict.fromkeys(partitions)))

    def _refuse_newcomers(
        self, timeline: Timeline, instant: str, parts: Sequence[_Part], stats: Mapping[str, Iterable[WriteStat]]
    ) -> None:
        """Raises ConflictError for a log file that a process presumed dead wrote since our look: it would count too."""
        known = {f"{ROOT}/{stat.path}" for items in stats.values() for stat in items}
        known.update(info.path for part in parts for info in part.place.logs)
        file_ids = {(part.place.partition, part.place.file_id) for part in parts}
        self._list_ahead(stats)
        for partition in stats:
            if self._by_instant:
                late = [info for info in self._named_after(instant, partition) if info.path not in known]
            else:
                places = self.metadata_timeline.latest_slices(timeline, partition)
                logs = (info for place in places if (partition, place.file_id) in file_ids for info in place.logs)
                late = [
                    *blocks_of(
                        self.metadata_timeline.storage, (info for info in logs if info.path not in known), instant
                    ).live
                ]
            if late:
                raise _conflict("another attempt's block appeared in the metadata table", late[0].path)

    def _write_parts(
        self, parts: Sequence[_Part], instant: str, schema: str, token: WriteToken
    ) -> list[list[WriteStat]]:
        """Writes the log files of all parts; of staged blocks, which may be large, one after the other."""
        jobs = [partial(self._write_part, part, instant, schema, token) for part in parts]
        if any(part.staged for part in parts):
            return [job() for job in jobs]
        return overlapped(self.metadata_timeline.storage, jobs)

    def _write_part(self, part: _Part, instant: str, schema: str, token: WriteToken) -> list[WriteStat]:
        """Writes a part's log files; returns write stats. Earlier log files with all records or staged blocks stay."""
        known = {info.path for info in part.place.logs}
        place = replace(part.place, logs=(*part.place.logs, *(info for info in part.written if info.path not in known)))
        stat = partial(log_stat, metadata_instant=self._by_instant)
        stats = [
            stat(place, parse_log_file(info.name), info.size, len(part.cells), len(part.deleted))
            for info in part.written
        ]
        for block, records, deletions in self._blocks(part, instant, schema):
            name = place.next_log(token, instant if self._by_instant else None)
            path = metadata_path(name, place.partition)
            self._put(path, block)
            stats.append(stat(place, name, len(block), records, deletions))
            place = replace(place, logs=(*place.logs, FileInfo(path, len(block), 0.0)))
        return stats

    def _blocks(self, part: _Part, instant: str, schema: str) -> Iterator[tuple[bytes, int, int]]:
        """Yields the contents of the log files to write, each with the numbers of its records and deletions."""
        if (part.cells or part.deleted) and not part.written:
            yield self._encode(part, instant, schema), len(part.cells), len(part.deleted)
        for item in part.staged:
            block = self.metadata_timeline.storage.read(item.path)
            if len(block) != item.size:
                raise _conflict(f"{item.size} bytes were staged for the index {part.place.partition}", item.path)
            yield block, item.records, item.deletions

    def _encode(self, part: _Part, instant: str, schema: str) -> bytes:
        headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
        block = b""
        if part.cells:
            content = write_hfile(part.cells, schema=schema)
            block = encode_block(BlockType.HFILE_DATA, headers, content)
        if part.deleted:
            keys = pa.array([key.encode() for key in part.deleted], pa.binary())
            content = encode_natural_deletes(keys, part.place.partition)
            block += encode_block(BlockType.DELETE, headers, content)
        return block

    def _put(self, path: str, block: bytes) -> None:
        try:
            self.metadata_timeline.storage.create_exclusive(path, block)
        except StorageExistsError as error:
            if self.metadata_timeline.storage.read(path) != block:
                raise _conflict(_OTHERS_BLOCK, path) from error


def _conflict(message: str, path: str) -> ConflictError:
    return ConflictError(
        message, path=path, remedy="run the instant again: it is rolled back in the metadata table first"
    )


def _encoded(encoder: RecordEncoder, records: Iterable[Record]) -> tuple[Cells, list[str]]:
    deleted: list[str] = []

    def kept() -> Iterator[tuple[str, Datum]]:
        for key, datum in records:
            if datum is None:
                deleted.append(key)
            else:
                yield key, datum

    cells = encoder.cells(kept())
    return cells, sorted(deleted)


def _by_partition(items: Iterable[tuple[_Part, Sequence[WriteStat]]]) -> dict[str, tuple[WriteStat, ...]]:
    found: dict[str, list[WriteStat]] = {}
    for part, stats in items:
        found.setdefault(part.place.partition, []).extend(stats)
    return {partition: tuple(stats) for partition, stats in found.items()}
