"""The records that each partition type makes of a commit, clean, rollback or restore, and at its initialization.

- ``protocol``: what a partition type defines, and its defaults; the file groups of a new partition.
- ``registry``: the types and their order; cleans and restores; needed statistics; the rule that merges two records.
- ``single_files``: the records of `files`, `column_stats` and `bloom_filters`: the files with records, and deletions.
- ``whole_ranges``: the ranges of whole partitions, in `partition_stats` and expression indexes: when a commit replaces
  a range, and when it only widens the range; the expression indexes that cannot be kept.
- ``row_level``: the file groups of row-level indexes; the rows that a commit added or removed; keys that are too long.
- ``row_indexes``: the records of the record index (where a row is) and of secondary indexes (value and record key);
  the column types that a secondary index can have. Rows without a value are in it.
- ``row_exchange``: the record that stays where one key has several since a row moved; when a log file is full.

Elsewhere: ``codec/hashing`` says which file group has a key; ``metadata_table/records`` merges two ranges, or two
entries of `files`; ``metadata_table/read/row_level`` says which keys keep their place after an overwrite.
"""
