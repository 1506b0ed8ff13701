"""The metadata table of a Hudi table: its records, how it is read and written, and its table services.

- ``partition_type``: the names of the partition types; which types are row-level indexes, need a definition, or depend
  on another type; after which operations a row-level index stays as it is.
- ``keys``: the key of each kind of record, and the part of a secondary index's key that chooses the file group.
- ``record``: the Avro schema of records in each table version; how a record is encoded and decoded.
- ``indexed_table``: the columns that have statistics, and the column types that can have them; the version of an
  index's values; where the definitions of indexes are, and how they are read and changed.
- ``instants``: what an instant's name says; whose log blocks count; how partitions start; up to when an index is whole.
- ``timeline``: the content of a deltacommit's files, its completion time, and the schema of its records.
- ``records/``: files, ranges and filters as records: how they are stored, compared and merged.
- ``extract/``: the statistics of a data file, from its footer or its rows; the values of expression indexes.
- ``partitions/``: the records that each partition type makes of a commit, clean, rollback or restore.
- ``read/``: lookups; the file slices and log blocks that count; missing and short files; what an index may lack.
- ``write/``: the deltacommit of an action; how it is rolled back or restored; the drop of the table or an index.
- ``row_updates``: the order in which a commit updates the row-level indexes; when an overwrite looks up keys of other
  partitions; when a new data partition gets file groups in a record index.
- ``initialize/``: the first build of the metadata table and of its partitions, also beside writers.
- ``services/``: the compaction, clean and archival of the metadata table; deltacommits that dead writers left.

Elsewhere: ``codec/hashing`` says which file group has a key; ``services/metadata/columns`` adds columns to an index;
``services/metadata/catch_up`` finds what the metadata table lacks; ``index/skipping`` says which files a query skips.
"""
