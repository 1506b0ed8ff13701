"""The metadata table of a Hudi table: what its records are, how it is read and written, and its table services.

- ``partition_type``: the names of the partition types; which are row-level indexes, which need a definition, which go
  with another one, and after which operations a row-level index stays as it is.
- ``keys``: the key of each kind of record, and which part of a secondary index's key chooses the file group.
- ``record``: the Avro schema of records in each table version; how a record is encoded and decoded.
- ``indexed_table``: which columns have statistics, and which column types can; the version of an index's values; where
  the definitions of indexes lie, and how they are read and changed.
- ``instants``: what the name of an instant says; the instants whose log blocks count; under which instant a partition
  is initialized; up to which commit an index is known to be whole.
- ``timeline``: the content of a deltacommit's files, its completion time, and which schema its records have.
- ``records/``: files, ranges and filters as records: how they are stored, compared and merged.
- ``extract/``: the statistics of a data file, from its footer or its rows; the values of expression indexes.
- ``partitions/``: which records each partition type makes of a commit, clean, rollback or restore.
- ``read/``: lookups; which slices and log blocks count; missing and short files; what an index may lack.
- ``write/``: the deltacommit of an action, how it is rolled back or restored, and the drop of the table or an index.
- ``row_updates``: in which order a commit updates the row-level indexes; when an overwrite looks up keys of other
  partitions; when a new data partition gets file groups in a record index.
- ``initialize/``: the first build of the metadata table and of its partitions, also beside writers.
- ``services/``: the compaction, clean and archival of the metadata table; deltacommits that dead writers left.

Elsewhere: which file group has a key is in ``codec/hashing``; how columns are added to an index in
``services/metadata/columns``, what the metadata table lacks in ``catch_up`` there; which files a query skips in
``index/skipping``.
"""
