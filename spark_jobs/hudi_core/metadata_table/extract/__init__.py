"""What indexes hold of one data file: the ranges of its columns, its bloom filter, the values of expressions.

- ``data_file``: whether a base file's footer is enough or its rows are read; which log blocks count (all, whatever
  became of their instants); which files are refused, and which ranges.
- ``column_ranges``: the range of a column from rows or from a Parquet footer: where NaN and zero go, and which footers
  give no range.
- ``expressions``: the value of an expression index, as Spark computes it: which functions, date patterns and time zones
  there are, which are refused, and what the index holds of a file.

Elsewhere: which columns have statistics is in ``metadata_table/indexed_table``; how ranges merge in
``metadata_table/records/range_merge``, and how a bound is stored in ``bounds`` there.
"""
