"""Writes the rows of a source to a table: bulk_insert, insert, upsert, delete. Overwrites share most of it.

- ``verb``: what a second request with the same token does; which failed writes are rolled back first; which writers and
  plans stop a request; what happens to an attempt that fails.
- ``tokens``: which instant has a token, on the timeline or in the archive; what a run would do with it first.
- ``work``: what each kind of write says of itself: its action, its partitions, what stops it; what a result counts.
- ``checks``: what must still hold: the table's schema, its buckets, no partition below another, no other commit to the
  file groups of a write, no log block that hides those of a write.
- ``row_shards``: to which shard a row goes; how many shards a partition has; which of the rows with one key stays.
- ``shard_files``: how the rows of a shard become files; which rows are not written.
- ``plan``: which tables a write refuses; the file slices where rows may go.
- ``tagging/``: in which file group a key is; which of the rows with one key stays.
- ``log_keys``: which log files may have keys that no base file has.
- ``route``: which shard writes a row; which small file groups are filled, and which new rows they take.
- ``upsert``: how a file group gets its next base file.
- ``append``: what a log file of a write has in it, in which order and format, and how it is named.
- ``job``: what comes before the instant is inflight; what the inflight file says; what must hold at the commit.
- ``proof``: how it is shown that each row was written once.
- ``new_rows``: how large the new files become, also those of buckets; which steps of an exchange write them.

Elsewhere: ``services/source`` reads the rows, makes their keys and counts them; ``services/rewriting/new_file_groups``
says when a new file is full, ``filegroup/write/delete_entries`` which deletes log files get; ``services/overwrite``
what an overwrite replaces.
"""
