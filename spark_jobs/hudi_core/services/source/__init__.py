"""The rows that a write gets: where they come from, how many there are, and whether they fit the table.

- ``files``: which files are a source, and which are refused; how many rows each partition gets; what one task reads.
- ``schema``: which columns and types of a source the table takes; which columns it gains, and which get wider.
- ``count``: whether the options make the keys, buckets and time zones that the table's rows have; in which tables rows
  of one key are not combined.
- ``key_scope``: where the types of indexes look for a key.
- ``row_size``: how large a row becomes.
- ``staged_rows``: where the rows of a query are kept until they are written, and when forgotten rows are deleted.
- ``predicate``: which rows a delete by predicate selects, and where their keys are kept.

Elsewhere: ``filegroup/write/key_generator`` makes the key and partition path of a new row, and
``filegroup/write/buckets`` its bucket; ``services/write`` says where the rows go.
"""
