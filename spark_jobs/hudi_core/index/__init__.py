"""Says what a query need not read, by its predicate: partitions, files, row groups and pages.

- ``skipping``: which partitions and file slices a query skips; which indexes it asks, and in which order; which of them
  serve only the newest snapshot; which expression of a predicate an index answers.
- ``value_ranges``: the least and the greatest value of a column in a slice or a partition; which statistics are not
  believed; what the text of a partition path says of a column.
- ``key_lookups``: which record keys a predicate leaves possible, and in which file groups they are; when the record
  index or a secondary index is not believed.
- ``page_skipping``: which row groups of a base file are read, and which pages in them.
- ``row_group_skipping``: the ranges of row groups; which base files cannot have a key, by the key range
  and the bloom filter in the footer; bounds of a column whose type was widened.

Elsewhere: ``expr/ranges`` says whether a predicate may hold in a range, ``metadata_table/read/completeness`` whether an
index is whole, ``metadata_table/indexed_table`` which columns have statistics.
"""
