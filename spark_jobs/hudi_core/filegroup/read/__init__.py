"""Makes rows of the files of a file slice.

- ``log_scan``: which log blocks count, and in which order they are merged: pending instants, rollback commands, blocks
  newer than the query, outputs of log compactions; up to which instant a log compaction takes blocks.
- ``torn_tails``: whether a corrupt block lost rows of a completed commit, or is the torn end of a write that died.
- ``log_records``: the rows of a log block, and how much of it is decoded at once; what a record gets for a key or a
  column that it lacks; where change operations are refused.
- ``base_file``: the rows of a base file of any format; columns that it lacks, or has under an older name; which base
  files are refused: those of a metadata-only bootstrap, and in a rewrite those with change operations.
- ``schema_resolver``: the schema of the table's rows, now or as of an instant; which data files show it when no commit
  and no property does.
- ``slice_reader``: whether logs are merged by position or by key; when a corrupt block is an error of a query; with
  which base rows an incremental query merges logs.
- ``read_spec``: the columns of a query, their types and their order; which rows its conditions keep.
- ``partition_values``: which columns are read from the partition path; how its values are read: escapes, nulls, slashed
  dates.
- ``planned_slices``: whether a plan names the slices that the table had; which log files it may lack.

Elsewhere: which version of a row wins is in ``filegroup/merge``; which commit sets the schema is in
``timeline/schemas``; what a corrupt block is, in ``codec/log/blocks``; which files a slice has, in ``view/slicing``.
"""
