"""The records of files, ranges and filters: how they are stored, compared and merged.

- ``file_statistics``: the input of partition types as plain values: the statistics of a file, what a commit did, which
  files came and went; which operations only rewrite rows; which files count in a partition's range.
- ``files``: the records of `files` for a commit, rollback, clean or restore, and how two of one key merge: the larger
  size counts, and a deletion removes an entry.
- ``column_stats``: the records of ranges: when a newer one replaces the older and when it widens it; which range gets
  no record; what marks a deletion.
- ``bounds``: how a least or greatest value is stored in each index version and for each column type, and read as a
  value of the column's type now; texts that are not UTF-8.
- ``range_merge``: which of two bounds is the outer one, also of NaN and of a column that was widened; whether a range
  is unknown, or contains another; which ranges that Hudi recorded may be false.

Elsewhere: how a file's range is computed is in ``metadata_table/extract``; which files a query keeps by ranges in
``index/value_ranges``; the records of row-level indexes in ``metadata_table/partitions/row_indexes``; by which type's
rule two records of one key merge in ``metadata_table/partitions/registry``.
"""
