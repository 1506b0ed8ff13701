"""Brings records to the metadata table under one instant: a log file in every file group they belong to, and the deltacommit that names them.

What is written is decided by the records alone, so whoever comes again with the same records, after a crash at any point, goes on from what is
there: a file group that has a block of the instant has it whole, as a log file appears at once or not at all. Memory: the records of all
partitions as encoded cells, and one log file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hudi_core.codec.hashing import file_group_indexes
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.encode import encode_block
from hudi_core.metadata_table.clean_records import Record
from hudi_core.metadata_table.delta_commit import (
    complete_delta_commit,
    latest_schema,
    log_stat,
    profile_stat,
    write_delta_commit_inflight,
    write_delta_commit_start,
)
from hudi_core.metadata_table.file_group import ROOT, LatestSlice, blocks_of, latest_slices, metadata_path, pending_bases
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.metadata_table.record import RecordEncoder, block_schema
from hudi_core.model.ids import WriteToken
from hudi_core.model.names import LogFileName, parse_log_file
from hudi_core.model.stats import WriteStat
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.query import Timeline

Cells = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one file group gets. `written` are log files with blocks of the instant, of an earlier attempt."""

    place: LatestSlice
    cells: Cells
    written: tuple[FileInfo, ...]


class DeltaWriter:
    """Writes deltacommits of the metadata table in `storage`; `token` makes the log files' names this attempt's own."""

    def __init__(self, storage: Storage, own: OwnTimeline, token: WriteToken) -> None:
        self._storage = storage
        self._own = own
        self._token = token

    def write(self, instant: str, records: Mapping[str, Iterable[Record]]) -> None:
        """Writes and completes deltacommit `instant` with `records` by metadata partition; it may be empty. Done already: nothing happens.

        The caller holds the table lock. No two records of a partition share a key. Raises StorageNotFoundError for a partition without file
        groups, before anything is written.
        """
        active, json, own_instant = self._own.active, self._own.features.json_commits, self._own.features.log_name_has_own_instant
        timeline = active.load()
        found = timeline.find(instant, Action.DELTA_COMMIT)
        if found is not None and found.is_completed:
            return
        schema = latest_schema(active, timeline)
        encoder = RecordEncoder(block_schema(schema))
        parts = self._parts(timeline, instant, {name: encoder.cells(items) for name, items in records.items()}, resumed=found is not None)
        if found is None or found.state is State.REQUESTED:
            profile = _by_partition((part.place.partition, (profile_stat(part.place, len(part.cells), own_instant=own_instant),)) for part in parts)
            begin = write_delta_commit_start if found is None else write_delta_commit_inflight
            begin(active, instant, profile, json=json)
        stats = _by_partition((part.place.partition, self._write_part(part, instant, encoder.schema)) for part in parts)
        complete_delta_commit(active, instant, stats, schema, self._own.completion_time(instant), json=json)

    def _parts(self, timeline: Timeline, instant: str, cells: Mapping[str, Cells], *, resumed: bool) -> list[_Part]:
        features = self._own.features
        pending = {} if features.log_name_has_own_instant else pending_bases(self._own.active, timeline)
        parts = []
        for partition, items in cells.items():
            places = latest_slices(self._storage, timeline, partition, layout=features.layout, pending=pending)
            by_group: dict[int, Cells] = {}
            indexes = file_group_indexes([key.decode("utf-8") for key, _ in items], len(places))
            for item, index in zip(items, indexes.tolist(), strict=True):
                by_group.setdefault(index, []).append(item)
            for index in sorted(by_group):
                written = self._written(places[index], instant) if resumed else ()
                parts.append(_Part(places[index], by_group[index], written))
        return parts

    def _written(self, place: LatestSlice, instant: str) -> tuple[FileInfo, ...]:
        if not self._own.features.log_name_has_own_instant:
            return blocks_of(self._storage, place.logs, instant).live
        # Logs of a deltacommit that is not completed belong to no slice, so the folder is asked.
        start = f".{place.file_id}_{instant}.log."
        return tuple(info for info in self._storage.list_files(f"{ROOT}/{place.partition}") if info.name.startswith(start))

    def _write_part(self, part: _Part, instant: str, schema: str) -> tuple[WriteStat, ...]:
        own_instant = self._own.features.log_name_has_own_instant
        logs = [(parse_log_file(info.name), info.size) for info in part.written] or [self._create(part, instant, schema)]
        return tuple(log_stat(part.place, name, len(part.cells), size, own_instant=own_instant) for name, size in logs)

    def _create(self, part: _Part, instant: str, schema: str) -> tuple[LogFileName, int]:
        features = self._own.features
        headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
        content = write_hfile(part.cells, schema=schema, codec="GZ")
        block = encode_block(BlockType.HFILE_DATA, headers, content, hudi_1_headers=features.hudi_1_log_headers)
        name = part.place.next_log(self._token, instant if features.log_name_has_own_instant else None)
        self._storage.create_exclusive(metadata_path(name, part.place.partition), block)
        return name, len(block)


def _by_partition(items: Iterable[tuple[str, tuple[WriteStat, ...]]]) -> dict[str, tuple[WriteStat, ...]]:
    found: dict[str, tuple[WriteStat, ...]] = {}
    for partition, stats in items:
        found[partition] = (*found.get(partition, ()), *stats)
    return found
