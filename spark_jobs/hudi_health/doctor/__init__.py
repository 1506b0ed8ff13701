"""The checks of ``doctor``: they find what is wrong with a table, and name the fix. Nothing is written.

- ``examine``: runs the checks and sorts the findings; whether the storage can create exclusively, or is untested; an
  unfinished drop of the metadata table.
- ``findings``: the meaning of error, warning and info; how many differences are kept; one look at the table's files.
- ``instants``: pending instants without a live writer; plans that cannot be read; files that name no instant; commits
  that were archived although an older instant was not; an indexing that is the latest action.
- ``writers``: which options every writer needs; which indexes a writer with default options drops; a lock that is left
  behind, held for long, or unreadable.
- ``clocks``: instants in another zone than they are read in; clocks that differ too much; an instant in the future.
- ``listings``: orphan files; wrong entries in the metadata table; indexes that are empty, damaged, behind, or may lack
  rows.
- ``stored_files``: base files that lost bytes, are copies, or label timestamps wrongly; buckets with several file
  groups; corrupt log blocks and torn ends of log files.
- ``compression``: the savings of zstd on the base files, measured on a sample.
- ``wheels``: which distributions the driver and the executors need, and which are missing.

Elsewhere, in ``hudi_core``: the rule for an orphan file is in ``services/archive/listing``; whether a corrupt block
lost rows in ``filegroup/read/torn_tails``; whether an owner is dead in ``transaction/claim_file``; what an index may
lack in ``metadata_table/read/completeness``.
"""
