"""Finds the partitions and data files of a table, and makes file groups and file slices of them.

- ``listing``: which folders are partitions, where a walk of them ends, and which data files have fewer bytes than their
  commit wrote.
- ``slicing``: which slice a log file belongs to, in layout 1 and 2; whether a reader sees a file; which of several base
  files of one instant counts.
- ``file_group``: the files of a file slice; when it is empty or cut off; the check that those of a unit are in its
  partition.
- ``latest_slices``: the same rules for the newest slices of many file groups at once.
- ``slice_columns``: these slices as columns, by which planners choose; the objects of the chosen ones.
- ``file_system_view``: which slices a query reads, as of now or of a time, and beside a pending compaction; until when
  a replaced file group is read; slices that a downgrade cut off.

Elsewhere: ``filegroup/read/log_scan`` says which log blocks count; ``metadata_table/read/metadata_table`` lists by the
metadata table, ``metadata_table/read/whole_files`` finds its files that are missing or cut; ``timeline/pending_plans``
has the file groups that a pending plan occupies.
"""
