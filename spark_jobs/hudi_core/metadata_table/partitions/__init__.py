"""Which records each partition type makes of a commit, clean, rollback or restore, and at its start.

- ``protocol``: what a partition type has to say, and what holds where it says nothing; how many file groups a new one
  has, and their ids.
- ``registry``: which partition types there are, and their order; which of them a clean or restore changes; which
  statistics they need; by which type's rule a compaction merges two records.
- ``single_files``: the records of `files`, `column_stats` and `bloom_filters`: which files have one, when it goes, and
  which deletions are not written because they are too many.
- ``whole_ranges``: the ranges of whole partitions, in `partition_stats` and expression indexes: when a commit replaces
  a range, and when it only widens it; which expression indexes cannot be kept.
- ``row_level``: how many file groups a record index or secondary index has, and their ids; which rows a commit added to
  a file group or took from it; which key is too long.
- ``row_indexes``: the records of the record index (where a row is) and of secondary indexes (value and record key);
  which column types a secondary index can have, and that rows without a value are in it.
- ``row_exchange``: which of several records of one key stays when a row moves; when a log file is full.

Elsewhere: which file group has a key is in ``codec/hashing``; how two ranges merge, or two entries of `files`, in
``metadata_table/records``; which keys keep their place behind an overwrite in ``metadata_table/read/row_level``.
"""
