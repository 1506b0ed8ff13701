"""Rolls back the data files of one instant: deletes its own files, rolls back its blocks in shared log files.

Instants of table version 6 share log files, so a command block goes into a log file of its own after them
(BaseRollbackHelper of 0.15, RollbackHelperV1 of 1.x). Later versions name every file after its instant and delete it
(RollbackHelper of 1.x). Nothing in a plan is followed as a path. A file counts when its plain name parses and has the
failed instant, or is that of a log file with blocks of that instant alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from typing import Final

from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey, LogBlock, encode_block
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write.markers import MarkerType, create_marker, list_markers
from hudi_core.frozen import dataclass
from hudi_core.model.names import ROLLBACK_TOKEN, LogFileName, parse_data_file
from hudi_core.model.partition import check_partition, join
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.rollback import RollbackStep
from hudi_core.view.file_group import DataFile

log = logging.getLogger(__name__)

_THREADS: Final = 16
"""How many files of one rollback are deleted at the same time: a delete is one request and no work."""


@dataclass(frozen=True, slots=True)
class RollbackStat:
    """What was rolled back in one partition (HoodieRollbackStat), in plain names: files deleted (also missing ones),
    log files of command blocks with their sizes, and the failed instant's log files with their sizes by the plan
    (`failed_logs`) and in storage (`kept_logs`).
    """

    partition: str
    deleted: tuple[str, ...] = ()
    commands: Mapping[str, int] = field(default_factory=dict, hash=False)
    failed_logs: Mapping[str, int] = field(default_factory=dict, hash=False)
    kept_logs: Mapping[str, int] = field(default_factory=dict, hash=False)


def rollback_command(rollback: str, failed: str) -> bytes:
    """Returns the log block that rolls back the blocks of `failed` before it."""
    headers = {
        HeaderKey.INSTANT_TIME: rollback,
        HeaderKey.TARGET_INSTANT_TIME: failed,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    return encode_block(BlockType.COMMAND, headers)


def is_named_after_another(storage: Storage, failed: str, partition: str, name: str) -> bool:
    """Whether a data file with the name of another instant is a log file of `failed`: all its blocks are, or the file
    is gone. While a clustering that resizes consistent hashing buckets is pending, a write also goes to the new bucket,
    into a log file named after the clustering (HoodieAppendHandle). Raises FormatError for a log file that has blocks
    of other instants as well, StorageError.
    """
    if not isinstance(parse_data_file(name), LogFileName):
        return False
    path = join(partition, name)
    try:
        file = DataFile(partition, name, storage.stat(path).size)
        instants = {block.instant_time for block in log_blocks(storage, [file]) if isinstance(block, LogBlock)}
    except StorageNotFoundError:
        return True
    if failed in instants and len(instants) > 1:
        message = f"the log file has blocks of {failed}, which is rolled back, and of other instants"
        raise FormatError(message, path=path, remedy="let the table's writer roll the instant back")
    return instants == {failed}


def step_of(
    request: RollbackStep, failed: str, *, source: str, is_renamed: Callable[[str, str], bool] | None = None
) -> RollbackStep:
    """Returns what a plan's request may do, with names of files. Files that are not of `failed`, and not `is_renamed`
    (is_named_after_another), are omitted, with a warning naming `source`. Raises FormatError for a log request whose
    file group or base instant make no file name.
    """
    partition = check_partition(request.partition, source=source)
    names = [address.rpartition("/")[2] for address in request.delete]
    kept = tuple(
        name
        for name in names
        if (parsed := parse_data_file(name))
        and (parsed.instant == failed or (is_renamed is not None and is_renamed(partition, name)))
    )
    if len(kept) < len(names):
        others = len(names) - len(kept)
        log.warning("%s names %d files that instant %s did not write; they are left alone", source, others, failed)
    if request.log_blocks:
        name = LogFileName(request.file_id, request.base_instant, 1, ROLLBACK_TOKEN)
        if parse_data_file(str(name)) != name or not request.base_instant:
            raise FormatError(f"{request.file_id!r} at {request.base_instant!r} is no file slice", path=source)
    return replace(request, delete=kept)


@dataclass(frozen=True, slots=True)
class FileRollback:
    """Removes the files of the instant `_failed`, for the rollback `_rollback`. Every step can be repeated."""

    _storage: Storage
    _failed: str
    _rollback: str

    def run(self, steps: Sequence[RollbackStep]) -> list[RollbackStat]:
        """Does all steps. Returns what was done by partition, sorted, also for steps that name nothing."""
        paths = sorted({join(step.partition, name) for step in steps for name in step.delete})
        if len(paths) < _THREADS:
            for path in paths:
                self._storage.delete(path)
        else:
            with ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="delete") as pool:
                list(pool.map(self._storage.delete, paths))
        appended = self._append_commands([step for step in steps if step.log_blocks])
        done: list[RollbackStat] = []
        for partition in sorted({step.partition for step in steps}):
            extra = appended.get(partition, RollbackStat(partition))
            names = {name for step in steps if step.partition == partition for name in step.delete}
            done.append(replace(extra, deleted=tuple(sorted({*names, *extra.deleted}))))
        return done

    def _append_commands(self, steps: Sequence[RollbackStep]) -> dict[str, RollbackStat]:
        earlier = self._earlier_commands() if steps else {}
        done: dict[str, RollbackStat] = {}
        for partition in sorted({step.partition for step in steps}):
            files = {info.name: info for info in self._storage.list_files(partition)}
            here = [step for step in steps if step.partition == partition]
            commands: dict[str, int] = {}
            for file_id, base_instant in sorted({(step.file_id, step.base_instant) for step in here}):
                name, size = self._append(
                    partition, file_id, base_instant, files, earlier.get((partition, file_id, base_instant), [])
                )
                commands[name] = size
            # Hudi 0.15 names a folder where it does not know the log file.
            named = [(key, key.rpartition("/")[2], size) for step in here for key, size in step.log_blocks.items()]
            blocks = {key: size for key, name, size in named if parse_data_file(name) is not None}
            stored = {name: files[name].size for key, name, _ in named if key in blocks and name in files}
            # A log file of 0 bytes holds no block: its writer died when it created the file. The metadata table lists
            # no file of 0 bytes (real Hudi lists it with a size of 1).
            empty = tuple(sorted(name for name, size in stored.items() if size == 0))
            for name in empty:
                self._storage.delete(join(partition, name))
            kept = {name: size for name, size in stored.items() if size}
            done[partition] = RollbackStat(partition, empty, commands, blocks, kept)
        return done

    def _earlier_commands(self) -> dict[tuple[str, str, str], list[str]]:
        """Returns the log files that earlier attempts at this rollback announced by markers, by file slice."""
        announced: dict[tuple[str, str, str], list[str]] = {}
        for marker in list_markers(self._storage, self._rollback):
            parsed = parse_data_file(marker.file_name)
            if isinstance(parsed, LogFileName):
                announced.setdefault((marker.partition, parsed.file_id, parsed.instant), []).append(marker.file_name)
        return announced

    def _append(
        self, partition: str, file_id: str, base_instant: str, files: Mapping[str, FileInfo], announced: list[str]
    ) -> tuple[str, int]:
        """Writes the command block that rolls back the slice's blocks of the failed instant. Returns its log file and
        size; an earlier attempt's, if it is whole. The marker is created first, as in Hudi: any engine that resumes the
        rollback finds the log file by it and records it in the metadata table.
        """
        for name in announced:
            if name in files and self._is_command(DataFile(partition, name, files[name].size)):
                return name, files[name].size
        versions = [
            parsed.version
            for parsed in map(parse_data_file, [*files, *announced])
            if isinstance(parsed, LogFileName) and (parsed.file_id, parsed.instant) == (file_id, base_instant)
        ]
        free = next((name for name in announced if name not in files), None)
        name = free or str(LogFileName(file_id, base_instant, max(versions, default=0) + 1, ROLLBACK_TOKEN))
        block = rollback_command(self._rollback, self._failed)
        if free is None:
            create_marker(self._storage, self._rollback, partition, name, MarkerType.APPEND)
        self._storage.create_exclusive(join(partition, name), block)
        return name, len(block)

    def _is_command(self, file: DataFile) -> bool:
        blocks = log_blocks(self._storage, [file])
        return any(
            isinstance(block, LogBlock) and block.is_rollback and block.target_instant_time == self._failed
            for block in blocks
        )
