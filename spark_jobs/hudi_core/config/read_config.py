"""Options of queries, under Hudi's own names where Hudi has them, else below `airflow_hudi.`."""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, boolean, flag, keys_in, one_of, optional

TIMELINE_ZONE = ConfigKey(
    "airflow_hudi.timeline.zone",
    "LOCAL",
    str,
    "time zone of the writers of a table whose instants are LOCAL, such as Europe/Berlin",
)
READ_ZONE = optional(
    "airflow_hudi.read.zone",
    "time zone of local time in predicates and in paths of partitions by timestamps, such as Europe/Berlin; UTC when"
    " absent",
)
DATA_SKIPPING = flag(
    "hoodie.enable.data.skipping",
    "skip files by the indexes of the metadata table when a query has a predicate",
    default=True,
)
FOOTER_SKIPPING = flag(
    "airflow_hudi.read.footer_skipping",
    "skip base files by their footers where no index covers them; opens each of them to plan",
)
STRICT = flag(
    "airflow_hudi.read.strict",
    "a corrupt block in a log file is an error of the query; when false it is skipped with a warning, as Hudi skips it",
)
FULL_SCAN = ConfigKey(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    None,
    boolean,
    "read the latest snapshot where files of an incremental query's range are missing; when absent, false in "
    "table version 6 and true from version 8 on",
)
END_SCHEMA = flag(
    "hoodie.datasource.read.schema.use.end.instanttime",
    "read with the schema of the last commit of the range instead of the latest schema",
)
HOLLOW_COMMITS = ConfigKey(
    "hoodie.read.timeline.holes.resolution.policy",
    "FAIL",
    one_of("FAIL", "BLOCK"),
    "FAIL or BLOCK: what an incremental query of table version 6 does when a commit is pending and later ones are"
    " completed",
)
_NOT_IN_6 = "in an incremental query; no effect in table version 6, as Hudi 0.15 has no such option"
SKIP_COMPACTION = flag("hoodie.datasource.read.incr.skip_compact", f"skip compactions {_NOT_IN_6}")
SKIP_CLUSTERING = flag("hoodie.datasource.read.incr.skip_cluster", f"skip clusterings {_NOT_IN_6}")
REPORT_REPLACED = flag(
    "airflow_hudi.incremental.report_replaced",
    "an incremental query also returns the rows that overwrites and dropped partitions replaced, with "
    "_hoodie_is_deleted",
)

READ_KEYS = keys_in(globals())
