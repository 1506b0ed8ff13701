"""Options of archival (HoodieArchivalConfig of Hudi 0.15 and 1.x), under Hudi's own names where Hudi has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hudi_core.config.keys import ConfigKey, flag, keys_in, number, one_of, read_fields
from hudi_core.config.services import compaction_config as compaction
from hudi_core.errors import ConfigError

REFUSE_ORPHANS = "refuse"
LEAVE_ORPHANS = "leave"
IGNORE_ORPHANS = "ignore"

KEEP_MAX = number(
    "hoodie.keep.max.commits",
    30,
    "number of completed commits on the active timeline above which the oldest are archived",
)
KEEP_MIN = number(
    "hoodie.keep.min.commits",
    20,
    "number of completed commits that archival leaves on the active timeline; without any, a table is empty",
)
ARCHIVE_BATCH = number(
    "hoodie.commits.archival.batch",
    10,
    "number of records in a block of the archive of table version 6; an instant has three records",
    within=(1, 10_000),
)
ARCHIVE_ON_CLEAN = flag(
    "hoodie.archive.block.on.latest.clean.ectr",
    "keep those commits on the timeline whose files the last clean did not delete",
)
ARCHIVE_BEYOND_SAVEPOINT = flag(
    "hoodie.archive.beyond.savepoint",
    "archive instants after the first savepoint too; the table can then no longer be restored to it",
)
HISTORY_BATCH = number(
    "hoodie.timeline.compaction.batch.size",
    10,
    "number of files of one level of the archive of versions 8 and 9 that are merged at once",
    within=(2, 10_000),
)
HISTORY_FILE_BYTES = number(
    "hoodie.timeline.compaction.target.file.max.bytes",
    1000 << 20,
    "bytes at which a merge of the archive takes no further file",
    within=(1 << 10, 1 << 40),
)
HISTORY_MANIFESTS = number(
    "hoodie.timeline.manifest.retained.versions",
    3,
    "number of snapshots of the archive of versions 8 and 9 that are kept for slow readers",
    within=(1, 10_000),
)
ORPHANS = ConfigKey(
    "airflow_hudi.archive.orphans",
    REFUSE_ORPHANS,
    one_of(REFUSE_ORPHANS, LEAVE_ORPHANS, IGNORE_ORPHANS),
    "files of instants that never completed, which readers would take for committed once the instants around them"
    " are archived: refuse to archive, leave those instants on the timeline, or ignore the files (as Hudi does, "
    "and without listing the table)",
)

ARCHIVE_KEYS = keys_in(globals())


@dataclass(frozen=True, slots=True)
class ArchiveConfig:
    """What is archived and how. `delta_commits` is None where the compaction's trigger counts none."""

    keep_min: int = KEEP_MIN.field()
    keep_max: int = KEEP_MAX.field()
    beyond_savepoint: bool = ARCHIVE_BEYOND_SAVEPOINT.field()
    block_on_clean: bool = ARCHIVE_ON_CLEAN.field()
    delta_commits: int | None = compaction.COMPACTION_DELTA_COMMITS.field()
    orphans: str = ORPHANS.field()
    batch: int = ARCHIVE_BATCH.field()
    history_batch: int = HISTORY_BATCH.field()
    history_file_bytes: int = HISTORY_FILE_BYTES.field()
    manifests_retained: int = HISTORY_MANIFESTS.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> ArchiveConfig:
        """Raises ConfigError for an option that is not valid, and where no commit would ever be archived."""
        config = read_fields(ArchiveConfig, options)
        if config.keep_min >= config.keep_max:
            message = f"{KEEP_MIN.name} is {config.keep_min} and {KEEP_MAX.name} is {config.keep_max}"
            raise ConfigError(message, remedy="keep more commits at most than at least")
        counts = compaction.COMPACTION_TRIGGER.read(options) in ("NUM_COMMITS", "NUM_AND_TIME")
        return config if counts else replace(config, delta_commits=None)
