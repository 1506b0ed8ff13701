"""The content of indexes for one data file: the ranges of its columns, its bloom filter, the values of expressions.

- ``data_file``: whether a base file's footer is enough; the log blocks that count (all); refused files and ranges.
- ``column_ranges``: a column's range from rows or a Parquet footer; NaN and zero; footers that give no range.
- ``expressions``: the value of an expression index, as Spark computes it: the functions, date patterns and time zones
  that are known, those that are refused, and the content of the index for a file.

Elsewhere: ``metadata_table/indexed_table`` says which columns have statistics; ``metadata_table/records/range_merge``
says how ranges merge, and ``bounds`` there how a bound is stored.
"""
