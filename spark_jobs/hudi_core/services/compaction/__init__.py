"""Merges the log files of file slices into new base files, or into one log file each (log compaction).

- ``strategies``: when a compaction is due; which partitions and file groups it takes, in which order;
  which day a partition path names.
- ``candidates``: which slices a plan may take at all: those with log files that no other plan holds, without log files
  that completed later; their numbers by which strategies choose.
- ``planner``: which slices a budget takes first; what a plan leaves to the next one.
- ``log_planner``: when a log compaction is due, on an explicit option only; how many log blocks a slice must have.
- ``block_order``: after which writes a log compaction may not come, so that all readers find the newest row.
- ``job``: which tables have no log compaction; which later compaction stops one; the check that the rows of each
  result add up; which checkpoints of streamers the commit carries on.
- ``merge_slice``: how one slice becomes a base file; the check that no row is lost; what the commit counts.
- ``merge_logs``: how the newest version of each row is copied to a log file; which blocks are refused; the file's name.

Elsewhere: which version of a row wins is in ``filegroup/merge/winning_version``; which row groups are copied in
``services/rewriting/row_group_copies``; the metadata table's compaction in ``metadata_table/services/compaction``.
"""
