"""What compares the metadata table with the data files and rows, for ``metadata validate``; nothing is written.

- ``run``: in which order the table is walked, and what is read of it; what a change of the table meanwhile comes to.
- ``registry``: which check a partition type has, and what is not checked, and why; the check of ``files``: missing,
  unlisted, of another size; which inflight actions excuse a missing file.
- ``subject``: the table, loaded once: which files completed commits wrote; which columns can be compared.
- ``check``: what every check gets during the walk; how many differences are kept; which columns make the record key.
- ``file_checks``: ``column_stats``, ``partition_stats``, ``bloom_filters`` and expression indexes: what each must hold
  of a file or a partition.
- ``true_ranges``: the least and greatest value in the rows; when a stored bound or count contradicts them.
- ``row_indexes``: the record index and secondary indexes: keys that are missing, too many, or at the wrong place; which
  values print alike for every writer.

Elsewhere, in ``hudi_core``: which columns have statistics is in ``metadata_table/indexed_table``; which size in a list
is wrong in ``services/archive/listing`` (``is_wrong_size``).
"""
