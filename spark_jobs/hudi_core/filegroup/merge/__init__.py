"""Decides which version of a row wins, when the base file and the log files of a slice have several.

- ``winning_version``: which of two versions of a row wins, and which of all versions in the log files; deletes, equal
  ordering values, a record after a delete.
- ``table_policy``: which rule a table has, by its merge mode, payload class and Hudi release; what marks a row as
  deleted; which columns make the key; whether positions may be used.
- ``ordering_values``: which ordering values compare, and as which type: nulls, decimals, NaN, delete entries.
- ``row_merge``: which fields of the winning row come from the other row: partial updates, nulls, defaults.
- ``user_mergers``: how a merge function of the user is registered, and what it must return.
- ``record_keys``: the record key of a stored row, and which types it may have; whether a row is marked as deleted.
- ``log_merge``: what is left of the log records of a key, or of a position; which columns a merge needs; when a
  partial-update block is refused.
- ``base_merge``: what becomes of a base row; a key that the base file has twice; rows that only the logs have; counts
  of rows in and out.
- ``payload_store``: when log records leave the memory and go to files.

Elsewhere: which log blocks count is in ``filegroup/read/log_scan``; whether a slice is merged by position or by key is
in ``filegroup/read/slice_reader``; the bytes that a merge may use in ``config/rows_config``.
"""
