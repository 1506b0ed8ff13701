"""What replaces partitions by the rows of a source, or by none (insert overwrites and partition deletes).

- ``verb``: what a second request with a token comes to; which failed writes are rolled back first; which writers and
  plans stop a request; what becomes of an attempt that fails.
- ``plan``: which partitions and file groups are replaced; what is in the way: plans, commits since, another schema,
  other buckets.
- ``source``: which files are a source, and which are refused; how many rows each partition gets; what one task reads.
- ``source_schema``: which columns and types of a source the table takes; which columns it gains, and which get wider.
- ``count``: whether keys, buckets and time zones by the options are those of the table's rows.
- ``row_shards``: to which shard a row goes; how many shards a partition has; which of the rows with one key stays.
- ``shard_files``: how the rows of a shard become files; which rows are not written; how large a row is.
- ``job``: which instant has a token, so that work is done once; where the rows of a query are kept until they are
  written, and when forgotten ones go; what must still hold at the commit; that all counted rows were written.

Elsewhere: key and partition path of a new row are in ``filegroup/write/key_generator``, its bucket in
``filegroup/write/buckets``; when a new file is full in ``services/rewriting/new_file_groups``.
"""
