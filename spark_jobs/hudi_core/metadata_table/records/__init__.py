"""The records of files, ranges and filters: how they are stored, compared and merged.

- ``file_statistics``: the input of partition types as plain values: the statistics of a file, the changes of a commit,
  the files that came and went; the operations that only rewrite rows; the files that count in a partition's range.
- ``files``: the records of `files` by action; how two of one key merge: the larger size counts, a deletion removes.
- ``column_stats``: the records of ranges: when a newer one replaces or widens; ranges without record; deletions.
- ``bounds``: how bounds are stored by index version and column type, and read in the present type; wrong UTF-8.
- ``range_merge``: the outer one of two bounds, also for NaN and for a column that was widened; whether a range is
  unknown, or contains another; the ranges recorded by Hudi that may be false.

Elsewhere: ``metadata_table/extract`` computes a file's range; ``index/value_ranges`` says which files a query keeps by
ranges; ``metadata_table/partitions/row_indexes`` has the records of row-level indexes;
``metadata_table/partitions/registry`` says by which type's rule two records of one key merge.
"""
