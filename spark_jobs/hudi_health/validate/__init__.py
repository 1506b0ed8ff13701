"""Compares the metadata table with the data files and rows, for ``metadata validate``. Nothing is written.

- ``run``: the order of the walk over the table, and what it reads; what happens if the table changes meanwhile.
- ``registry``: the check of each partition type; what is not checked, and why; the check of ``files``: missing files,
  unlisted files, wrong sizes; which inflight actions excuse a missing file.
- ``subject``: the table, loaded once: which files completed commits wrote; which columns can be compared.
- ``check``: the input of every check during the walk; how many differences are kept; which columns make the record key.
- ``file_checks``: ``column_stats``, ``partition_stats``, ``bloom_filters`` and expression indexes: what each must hold
  for a file or a partition.
- ``true_ranges``: the least and greatest value in the rows; when a stored bound or count contradicts them.
- ``row_indexes``: the record index and secondary indexes: missing keys, extra keys, keys at the wrong place; which
  values have the same text for every writer.

Elsewhere, in ``hudi_core``: the columns with statistics are in ``metadata_table/indexed_table``; the rule for a wrong
size in ``services/archive/listing`` (``is_wrong_size``).
"""
