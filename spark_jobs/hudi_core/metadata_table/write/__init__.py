"""How an action of the data table is written to the metadata table, and how that is rolled back.

- ``publish``: what a service calls for a commit, clean, rollback or restore; when a commit must wait for an index that
  is being built; when a restore drops the metadata table instead.
- ``commit_updates``: the records of a commit for each partition type; whether an index changed while it ran, whether it
  overtakes an older write, and when ranges of partitions are widened.
- ``remaining_files``: which other files hold rows of a partition after a commit, and which of them must be read.
- ``staged_logs``: the blocks that tasks write before the lock is taken: where they lie, and when they are deleted; when
  a key may have rows in several file groups.
- ``delta_writer``: the log files and the deltacommit of an instant: how it goes on after a crash, and when files of
  another attempt are a conflict.
- ``base_file``: the form of a base file: its blocks, its bloom filter, the order of keys.
- ``rollback``: how an instant is taken out, by deleted files or by command blocks; what a slow writer may still write;
  when a compaction has merged it, so that it must stay.
- ``restore``: the way back to an earlier instant: in which order files and instants go, and how `files` becomes what
  the storage has.
- ``restore_reach``: whether the metadata table can go back to an instant, and which indexes are dropped for that; which
  partitions were initialized after a commit.
- ``lifetime``: the properties of a new metadata table; in which order a drop deletes; what a crash left of a drop.

Elsewhere: the records of a clean, restore or rollback are in ``metadata_table/partitions/registry``; the updates of
row-level indexes in ``metadata_table/row_updates``; which actions are missing in ``services/metadata/catch_up``.
"""
