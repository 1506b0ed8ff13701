"""Options of incremental queries, under Hudi's own names where Hudi has them, else below `airflow_hudi.`."""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, boolean, one_of

FULL_SCAN: ConfigKey[bool | None] = ConfigKey(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    None,
    boolean,
    "read the latest snapshot where files of an incremental query's range are missing; when absent, false in "
    "table version 6 and true from version 8 on",
)
END_SCHEMA: ConfigKey[bool] = ConfigKey(
    "hoodie.datasource.read.schema.use.end.instanttime",
    False,
    boolean,
    "read with the schema of the last commit of the range instead of the latest schema",
)
HOLLOW_COMMITS: ConfigKey[str] = ConfigKey(
    "hoodie.read.timeline.holes.resolution.policy",
    "FAIL",
    one_of("FAIL", "BLOCK"),
    "FAIL or BLOCK: what an incremental query of table version 6 does when a commit is pending and later ones are"
    " completed",
)
SKIP_COMPACTION: ConfigKey[bool] = ConfigKey(
    "hoodie.datasource.read.incr.skip_compact", False, boolean, "skip compactions in an incremental query"
)
SKIP_CLUSTERING: ConfigKey[bool] = ConfigKey(
    "hoodie.datasource.read.incr.skip_cluster", False, boolean, "skip clusterings in an incremental query"
)
REPORT_REPLACED: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.incremental.report_replaced",
    False,
    boolean,
    "an incremental query also returns the rows that overwrites and dropped partitions replaced, with "
    "_hoodie_is_deleted",
)

READ_KEYS: tuple[ConfigKey[object], ...] = (
    FULL_SCAN,
    END_SCHEMA,
    HOLLOW_COMMITS,
    SKIP_COMPACTION,
    SKIP_CLUSTERING,
    REPORT_REPLACED,
)
