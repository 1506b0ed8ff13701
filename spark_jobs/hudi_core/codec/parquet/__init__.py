"""Reads, checks and writes base files in Parquet.

- ``file``: how many rows a batch has; when texts are read as codes of a dictionary; which old dates are refused; which
  error a failure of Arrow becomes.
- ``footer``: which footers are refused, since Arrow would abort on them or misread them; encrypted columns.
- ``pages``: the sizes that footer, columns and pages declare, which are checked before memory is taken for them.
- ``statistics``: which ranges in a footer are believed (NaN, texts that are cut); the calendar of a file's dates; which
  version of Spark a new file names.
- ``writer``: which encoding a column gets, when a row group is full, which codecs there are.
- ``splice``: which files' row groups may be copied without decoding: schema, writer, calendar.
- ``cuts``: at which rows a row group can be cut; the pages and the dictionary of a column there.
- ``pieces``: which rows of a piece are counted before it is copied; which columns are decoded for statistics.
- ``chunk_statistics``: the statistics of a piece: from its pages' bounds, or from its values.
- ``row_range``: which pages of each column hold some rows.
- ``page_index``: the checksums of pages; which page indexes are used.
- ``page_sink``: where the pages, the page index and copied row groups of a new file lie; how its statistics show NaN.
- ``thrift``: the protocol of footers and page headers; how deep a struct may nest, how many values it may have.

Elsewhere: row groups and pages that a query skips are in ``index/page_skipping``; those that a compaction copies in
``services/rewriting/row_group_copies``; when a new file is full in ``services/rewriting/new_file_groups``; which
library makes gzip in ``codec/gzip``.
"""
