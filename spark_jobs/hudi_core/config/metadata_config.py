"""Options of the metadata table's verbs that are ours; Hudi's own are read where they are used (docs/hudictl.md lists them)."""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, boolean

REBUILD_ROW_INDEXES: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.metadata.rebuild_row_indexes",
    False,
    boolean,
    "whether `metadata update` takes record and secondary indexes away, and builds them anew, where they cannot be told what was left out",
)

METADATA_KEYS: tuple[ConfigKey[object], ...] = (REBUILD_ROW_INDEXES,)
"""Every option of this module."""
