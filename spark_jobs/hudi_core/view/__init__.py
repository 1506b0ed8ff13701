"""Finds the partitions and data files of a table, and makes file groups and file slices of them.

- ``listing``: which folders are partitions, where a walk of them ends, and which data files have fewer bytes than their
  commit wrote.
- ``slicing``: which slice a log file belongs to, in layout 1 and 2; whether a reader sees a file; which of several base
  files of one instant counts.
- ``file_group``: the files of a file slice; when it is empty or cut off; that those of a unit are in its partition.
- ``file_system_view``: which slices a query reads, as of now or of a time, and beside a pending compaction; until when
  a replaced file group is read; slices that a downgrade cut off.

Elsewhere: which log blocks count is in ``filegroup/read/log_scan``; the listing of the metadata table in
``metadata_table/read/metadata_table``; its files that are missing or cut in ``metadata_table/read/whole_files``; file
groups that a pending plan occupies in ``timeline/pending_plans``.
"""
