"""Which file slices hold parts of rows: log blocks of partial updates (header IS_PARTIAL, facts 6.3), told by their headers alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.filegroup.log_scan import log_blocks

if TYPE_CHECKING:
    from hudi_core.model.ids import FileGroupId
    from hudi_core.storage.base import Storage
    from hudi_core.view.file_group import FileSlice

_READERS: Final = 8
"""Slices looked at at once: the work is waiting for storage. Each holds two windows of a log file, 128 KiB."""


def partial_groups(storage: Storage, slices: Sequence[FileSlice]) -> frozenset[FileGroupId]:
    """The file groups of those of `slices` with a partial-update block; one or two ranged reads for every log block up to the first of them.

    Raises StorageNotFoundError for a file that is gone, CorruptFileError or UnsupportedError for one that is no log file of a known format.
    """
    logged = [item for item in slices if item.log_files]
    with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="headers") as pool:
        found = pool.map(lambda item: _is_partial(storage, item), logged)
        return frozenset(item.file_group for item, partial in zip(logged, found, strict=True) if partial)


def _is_partial(storage: Storage, item: FileSlice) -> bool:
    return any(isinstance(block, LogBlock) and block.is_partial for block in log_blocks(storage, item.log_files))
