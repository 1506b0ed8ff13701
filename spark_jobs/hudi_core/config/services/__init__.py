"""Which options the plans of compaction, clustering, cleaning and archival have, with defaults and bounds.

- ``compaction_config``: what may trigger a compaction; which strategies are known, one or several in a row; thresholds
  of log files; how large a new base file may be; options of log compaction.
- ``clustering_config``: which strategy each of Hudi's class names stands for, and that buckets are refused; which
  partitions are looked at; sizes of files and groups; by what rows are sorted; what a plan tells those that run it.
- ``retention_config``: how much a clean keeps, and by which policy when none is set; when a partition filter is
  refused; how many commits archival keeps; what may become of orphans.

Elsewhere: when each is due, and what it takes, is in ``services/compaction/strategies``,
``services/clustering/strategies``, ``services/clean/retention`` and ``services/archive/planner``.
"""
