"""Options of archival (HoodieArchivalConfig of Hudi 0.15 and 1.x), under Hudi's own names where Hudi has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.config.keys import ConfigKey, boolean, one_of, whole_number
from hudi_core.config.verb_config import ARCHIVE_BEYOND_SAVEPOINT
from hudi_core.errors import ConfigError

_MAX = 2**31 - 1

REFUSE_ORPHANS = "refuse"
LEAVE_ORPHANS = "leave"
IGNORE_ORPHANS = "ignore"

KEEP_MAX: ConfigKey[int] = ConfigKey(
    "hoodie.keep.max.commits",
    30,
    whole_number(1, _MAX),
    "number of completed commits on the active timeline above which the oldest are archived",
)
KEEP_MIN: ConfigKey[int] = ConfigKey(
    "hoodie.keep.min.commits",
    20,
    whole_number(1, _MAX),
    "number of completed commits that archival leaves on the active timeline; without any, a table is empty",
)
ARCHIVE_BATCH: ConfigKey[int] = ConfigKey(
    "hoodie.commits.archival.batch",
    10,
    whole_number(1, 10_000),
    "number of records in a block of the archive of table version 6; an instant has three records",
)
ARCHIVE_ON_CLEAN: ConfigKey[bool] = ConfigKey(
    "hoodie.archive.block.on.latest.clean.ectr",
    False,
    boolean,
    "keep those commits on the timeline whose files the last clean did not delete",
)
HISTORY_BATCH: ConfigKey[int] = ConfigKey(
    "hoodie.timeline.compaction.batch.size",
    10,
    whole_number(2, 10_000),
    "number of files of one level of the archive of versions 8 and 9 that are merged at once",
)
HISTORY_FILE_BYTES: ConfigKey[int] = ConfigKey(
    "hoodie.timeline.compaction.target.file.max.bytes",
    1000 << 20,
    whole_number(1 << 10, 1 << 40),
    "bytes at which a merge of the archive takes no further file",
)
HISTORY_MANIFESTS: ConfigKey[int] = ConfigKey(
    "hoodie.timeline.manifest.retained.versions",
    3,
    whole_number(1, 10_000),
    "number of snapshots of the archive of versions 8 and 9 that are kept for slow readers",
)
COMPACTION_TRIGGER: ConfigKey[str] = ConfigKey(
    "hoodie.compact.inline.trigger.strategy",
    "NUM_COMMITS",
    one_of("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"),
    "what makes a compaction due; archival keeps the delta commits that NUM_COMMITS and NUM_AND_TIME count",
)
COMPACTION_DELTA_COMMITS: ConfigKey[int] = ConfigKey(
    "hoodie.compact.inline.max.delta.commits",
    5,
    whole_number(1, _MAX),
    "delta commits since the last compaction that make the next one due",
)
ORPHANS: ConfigKey[str] = ConfigKey(
    "airflow_hudi.archive.orphans",
    REFUSE_ORPHANS,
    one_of(REFUSE_ORPHANS, LEAVE_ORPHANS, IGNORE_ORPHANS),
    "files of instants that never completed, which readers would take for committed once the instants around them"
    " are archived: refuse to archive, leave those instants on the timeline, or ignore the files (as Hudi does, "
    "and without listing the table)",
)

ARCHIVE_KEYS: tuple[ConfigKey[object], ...] = (
    KEEP_MAX,
    KEEP_MIN,
    ARCHIVE_BATCH,
    ARCHIVE_ON_CLEAN,
    HISTORY_BATCH,
    HISTORY_FILE_BYTES,
    HISTORY_MANIFESTS,
    COMPACTION_TRIGGER,
    COMPACTION_DELTA_COMMITS,
    ORPHANS,
)
"""Every option of this module; ARCHIVE_BEYOND_SAVEPOINT is among those of restores."""


@dataclass(frozen=True, slots=True)
class ArchiveConfig:
    """What is archived and how. `delta_commits` is None where the compaction's trigger counts none."""

    keep_min: int = 20
    keep_max: int = 30
    beyond_savepoint: bool = False
    block_on_clean: bool = False
    delta_commits: int | None = 5
    orphans: str = REFUSE_ORPHANS
    batch: int = 10
    history_batch: int = 10
    history_file_bytes: int = 1000 << 20
    manifests_retained: int = 3

    @staticmethod
    def of(options: Mapping[str, str]) -> ArchiveConfig:
        """Reads the options.

        Raises ConfigError for one that is not valid, and where no commit would ever be archived.
        """
        least, most = KEEP_MIN.read(options), KEEP_MAX.read(options)
        if least >= most:
            raise ConfigError(
                f"{KEEP_MIN.name} is {least} and {KEEP_MAX.name} is {most}",
                remedy="keep more commits at most than at least",
            )
        counts = COMPACTION_TRIGGER.read(options) in ("NUM_COMMITS", "NUM_AND_TIME")
        return ArchiveConfig(
            keep_min=least,
            keep_max=most,
            beyond_savepoint=ARCHIVE_BEYOND_SAVEPOINT.read(options),
            block_on_clean=ARCHIVE_ON_CLEAN.read(options),
            delta_commits=COMPACTION_DELTA_COMMITS.read(options) if counts else None,
            orphans=ORPHANS.read(options),
            batch=ARCHIVE_BATCH.read(options),
            history_batch=HISTORY_BATCH.read(options),
            history_file_bytes=HISTORY_FILE_BYTES.read(options),
            manifests_retained=HISTORY_MANIFESTS.read(options),
        )
