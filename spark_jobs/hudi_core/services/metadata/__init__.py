"""Creates and maintains the metadata table without a data write.

- ``maintain``: the steps of ``metadata create`` and ``metadata update``, and their order; which listed indexes are lost
  and built again; which writes must end first; whether an update has anything to do.
- ``initialization``: which indexes a table can have; which files count in the snapshot that an index is made from;
  the estimated number of rows of a partition; which index is of no use without another.
- ``catch_up``: which actions the metadata table lacks, in which order they are applied, and which can no longer be;
  what happens to indexes that may lack rows, and to ranges of partitions that are too narrow.
- ``action_updates``: which records one late action adds, without deleted files and existing
  records; when a missing file is an error.
- ``row_changes``: the slices before and after a commit, for row-level indexes; when these must be built again
  because files were cleaned.
- ``index_drop``: how an index is dropped, and when its files may go; which pending indexings go with it;
  which indexes must be built again.
- ``columns``: which columns can be added to the statistics or dropped from them;
  which writes and actions must end first.
- ``column_statistics``: which records of a column are missing, and which belong to no file any more;
  which columns are refused.

Elsewhere: which columns have statistics is in ``metadata_table/indexed_table``; when the metadata table is compacted in
``metadata_table/services/compaction``; what a commit writes to it at once in ``metadata_table/write/commit_updates``.
"""
