"""Reads the predicates of queries, and decides for which rows they are true, and which files may have such rows.

- ``sql``: which SQL text is a predicate in Spark, Hive, Presto or Trino, and what is refused; the escape in a LIKE.
- ``sql_literals``: the type of a number in the text (`5`, `5.0`, `5e0`); the result of a cast of a literal.
- ``tree``: the parts of a predicate as values; how deep it may nest; what `%` and `_` mean in a pattern.
- ``bind``: which column a name means, and when it is ambiguous; in which type two columns are compared; NULL in a list,
  and NOT before it.
- ``literals``: which literal a column can be compared with; literals between two values of its type, or beyond them.
- ``functions``: which functions a predicate may call, their names in each dialect, and which depend on the time zone.
- ``wall_time``: which text is a date, a timestamp or a time zone; years outside of 1 to 9999; date patterns.
- ``bound``: for which rows of a batch a predicate is true: NULL, NaN, -0.0, the order of texts.
- ``ranges``: whether a file, partition or row group may have a matching row, by its ranges and counts of nulls.

Elsewhere: which partitions and files a query skips is in ``index/skipping``; which row groups in
``index/row_group_skipping``; the ranges of a file slice in ``index/value_ranges``; the value of an expression index in
``metadata_table/extract/expressions``.
"""
