"""Options of rollbacks and restores, under Hudi's own names."""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, boolean

ROLLBACK_USING_MARKERS: ConfigKey[bool] = ConfigKey(
    "hoodie.rollback.using.markers", True, boolean, "find what a failed write left by its markers, where there are any; else by listing the table"
)
ARCHIVE_BEYOND_SAVEPOINT: ConfigKey[bool] = ConfigKey(
    "hoodie.archive.beyond.savepoint", False, boolean, "archive instants behind the first savepoint; the table cannot be restored then"
)

ROLLBACK_KEYS: tuple[ConfigKey[object], ...] = (ROLLBACK_USING_MARKERS, ARCHIVE_BEYOND_SAVEPOINT)
"""Every option of this module."""
