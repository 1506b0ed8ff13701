"""Options of planning compaction, clustering, cleaning and archival, with defaults and bounds.

- ``compaction_config``: what may trigger a compaction; which strategies are known, one or several in a row; thresholds
  of log files; how large a new base file may be; options of log compaction.
- ``clustering_config``: the strategy of each of Hudi's class names, and that buckets are refused; which partitions a
  plan looks at; sizes of files and groups; the columns that sort rows; the parameters that a plan gives to its
  execution.
- ``retention_config``: how much a clean keeps, and by which policy when none is set; when a partition filter is
  refused; how many commits archival keeps; what archival may do about orphans.

Elsewhere: when each is due, and what it takes, is in ``services/compaction/strategies``,
``services/clustering/strategies``, ``services/clean/retention`` and ``services/archive/planner``.
"""
