"""Replaces partitions by the rows of a source, or by none (insert overwrites and partition deletes).

- ``verb``: what a second request with the same token does; which failed writes are rolled back first; which writers and
  plans stop a request; what happens to an attempt that fails.
- ``plan``: which partitions and file groups are replaced; what stops that: plans, later commits, another schema, other
  buckets.
- ``source``: which files are a source, and which are refused; how many rows each partition gets; what one task reads.
- ``source_schema``: which columns and types of a source the table takes; which columns it gains, and which get wider.
- ``count``: whether the options make the keys, buckets and time zones that the table's rows have.
- ``row_shards``: to which shard a row goes; how many shards a partition has; which of the rows with one key stays.
- ``shard_files``: how the rows of a shard become files; which rows are not written; how large a row is.
- ``job``: which instant has a token, so that work is done once; where the rows of a query are kept until they are
  written, and when forgotten rows are deleted; what must still hold at the commit; the proof that all counted rows were
  written.

Elsewhere: ``filegroup/write/key_generator`` makes the key and partition path of a new row, and
``filegroup/write/buckets`` its bucket; ``services/rewriting/new_file_groups`` says when a new file is full.
"""
