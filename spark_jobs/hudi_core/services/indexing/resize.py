"""Changes the number of file groups of a row-level index: it is delisted, deleted, rebuilt beside writers and listed
(RFC-8). Its files are deleted when every write has ended that may have read the older properties (metadata.index_drop).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from hudi_core.config.metadata_config import (
    FILE_GROUPS,
    PARTITIONED_RECORD_INDEX_MAXIMUM,
    PARTITIONED_RECORD_INDEX_MINIMUM,
    RECORD_INDEX_MAXIMUM,
    RECORD_INDEX_MINIMUM,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, CorruptFileError
from hudi_core.metadata_table.initialize.target import first_log
from hudi_core.metadata_table.instants import is_early
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.read.file_group import ROOT, data_files
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.indexing import IndexedPartition
from hudi_core.timeline.instant import Action

log = logging.getLogger(__name__)

GROUPS: Final = "airflow_hudi.file_groups"
"""In a plan's extra metadata, where the version has it: so that every run of the plan builds as many."""


def requested_counts(names: Iterable[str], options: Mapping[str, str]) -> dict[str, int]:
    """The file group counts that the options require, by index. Raises ConfigError when no named index has one."""
    count = FILE_GROUPS.read(options)
    if count is None:
        return {}
    found = {name: count for name in names if is_row_level(name)}
    if not found:
        raise ConfigError(
            f"{FILE_GROUPS.name} is for row-level indexes, and none is named",
            remedy="name record_index or a secondary index; the others keep the number of file groups they have",
        )
    return found


def planned_counts(plan: Iterable[IndexedPartition], options: Mapping[str, str], *, path: str) -> dict[str, int]:
    """By index, those that a plan records, else those of the run's options. Raises CorruptFileError for no number."""
    given = FILE_GROUPS.read(options)
    found: dict[str, int] = {}
    for item in plan:
        text = item.extra.get(GROUPS)
        if text is not None:
            try:
                found[item.name] = int(FILE_GROUPS.parse(text) or 0)
            except ValueError as error:
                raise CorruptFileError(
                    f"{GROUPS} is {text!r}: {error}", path=path, remedy="drop the plan with `hudictl unschedule`"
                ) from error
        elif given is not None and is_row_level(item.name):
            found[item.name] = given
    return found


def settings_for(count: int) -> dict[str, str]:
    """Hudi's options by which a row-level index is initialized with that many file groups."""
    limits = (
        RECORD_INDEX_MINIMUM,
        RECORD_INDEX_MAXIMUM,
        PARTITIONED_RECORD_INDEX_MINIMUM,
        PARTITIONED_RECORD_INDEX_MAXIMUM,
    )
    return {key.name: str(count) for key in limits}


def group_counts(storage: Storage, name: str) -> dict[str, int]:
    """By the prefix of their ids: `record-index`, in a partitioned one also a data partition's name."""
    ids = {parsed.file_id for _, parsed in data_files(storage.list_files(f"{ROOT}/{name}"))}
    return dict(Counter(file_id.rsplit("-", 2)[0] for file_id in ids))


def misfits(context: TableContext, config: TableConfig, counts: Mapping[str, int]) -> list[str]:
    """The listed indexes, in a partitioned one of any data partition, with another number of file groups, sorted."""
    return sorted(
        name
        for name, count in counts.items()
        if name in config.metadata_partitions
        and any(found != count for found in group_counts(context.storage, name).values())
    )


def remove_leftovers(context: TableContext, instant: str, names: Collection[str]) -> None:
    """Deletes the files of the run at `instant` in indexes that are listed now although it did not publish them.

    Hudi's writer lists them: it empties the folder and builds at once the enabled indexes that are not listed, unless
    they say `hoodie.metadata.index.async`. Files that this engine wrote afterwards belong to a deltacommit that is
    never completed; in version 6 to file groups whose first log file is gone, where it would count as groups of the
    index. The caller holds the claim of the instant, and the table lock. May be repeated.
    """
    config = TableConfig.load(context.storage)
    metadata_timeline = MetadataTimeline(context.storage, config, context.clock())
    folders = [f"{ROOT}/{name}" for name in sorted(config.metadata_partitions.intersection(names))]
    pending = metadata_timeline.active.load().pending().find(instant, Action.DELTA_COMMIT)
    for folder in folders:
        files = list(data_files(context.storage.list_files(folder)))
        paths = {info.path for info, _ in files}
        for info, name in files:
            if is_early(name.instant):
                is_left = join(folder, str(first_log(name.file_id, name.instant))) not in paths
            else:
                is_left = pending is not None and name.instant == instant
            if is_left:
                log.warning("%s is of a build that another writer's has replaced: deleted", info.path)
                context.storage.delete(info.path)
    if pending is not None:
        metadata_timeline.active.undo(instant, Action.DELTA_COMMIT)
