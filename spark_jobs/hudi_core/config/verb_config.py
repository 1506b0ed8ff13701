"""Options of rollbacks and restores, under Hudi's own names."""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, boolean, whole_number

REBUILD_ROW_INDEXES: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.metadata.rebuild_row_indexes",
    False,
    boolean,
    "whether `metadata update` takes record and secondary indexes away, and builds them anew, where they cannot be "
    "told what was left out",
)

METADATA_KEYS: tuple[ConfigKey[object], ...] = (REBUILD_ROW_INDEXES,)
"""Every option of this module."""


STALLED_MINUTES: ConfigKey[int] = ConfigKey(
    "airflow_hudi.doctor.stuck_minutes",
    60,
    whole_number(0, 10**6),
    "minutes after which a pending instant that nobody works on counts as stuck; one whose owner is "
    "provably dead does "
    "at once",
)

DOCTOR_KEYS: tuple[ConfigKey[object], ...] = (STALLED_MINUTES,)
"""Every option of this module."""


ROLLBACK_USING_MARKERS: ConfigKey[bool] = ConfigKey(
    "hoodie.rollback.using.markers",
    True,
    boolean,
    "find what a failed write left by its markers, where there are any; else by listing the table",
)
ARCHIVE_BEYOND_SAVEPOINT: ConfigKey[bool] = ConfigKey(
    "hoodie.archive.beyond.savepoint",
    False,
    boolean,
    "archive instants behind the first savepoint; the table cannot be restored then",
)

ROLLBACK_KEYS: tuple[ConfigKey[object], ...] = (ROLLBACK_USING_MARKERS, ARCHIVE_BEYOND_SAVEPOINT)
"""Every option of this module."""
