"""Options of rollbacks, of the doctor and of metadata updates, under Hudi's own names where Hudi has them."""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, boolean, whole_number

REBUILD_ROW_INDEXES: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.metadata.rebuild_row_indexes",
    False,
    boolean,
    "whether `metadata update` drops and rebuilds record and secondary indexes that cannot be updated with a "
    "missing commit",
)

METADATA_KEYS: tuple[ConfigKey[object], ...] = (REBUILD_ROW_INDEXES,)
"""Every option of this module."""


STALLED_MINUTES: ConfigKey[int] = ConfigKey(
    "airflow_hudi.doctor.stuck_minutes",
    60,
    whole_number(0, 10**6),
    "minutes after which a pending instant that no process works on counts as stuck; one whose owner is provably "
    "dead counts at once",
)

DOCTOR_KEYS: tuple[ConfigKey[object], ...] = (STALLED_MINUTES,)
"""Every option of this module."""


ROLLBACK_USING_MARKERS: ConfigKey[bool] = ConfigKey(
    "hoodie.rollback.using.markers",
    True,
    boolean,
    "find the files of a failed write by its markers, where it has any; otherwise by listing the table",
)
ARCHIVE_BEYOND_SAVEPOINT: ConfigKey[bool] = ConfigKey(
    "hoodie.archive.beyond.savepoint",
    False,
    boolean,
    "archive instants after the first savepoint too; the table can then no longer be restored to it",
)

ROLLBACK_KEYS: tuple[ConfigKey[object], ...] = (ROLLBACK_USING_MARKERS, ARCHIVE_BEYOND_SAVEPOINT)
"""Every option of this module."""
