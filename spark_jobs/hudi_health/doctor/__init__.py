"""What ``doctor`` finds wrong with a table, and what to do about it; nothing is written.

- ``examine``: what is looked at, and in which order findings come; whether the storage can create exclusively, or is
  untested; a drop of the metadata table that was cut off.
- ``findings``: what error, warning and info mean; how many differences are kept; one look at the table's files.
- ``instants``: pending instants without a live writer; plans that cannot be read; names that are no instant's; commits
  that were archived behind an older instant; an indexing that is the latest action.
- ``writers``: which options every writer needs; which indexes a writer with default options drops; the lock: left
  behind, kept for long, or unreadable.
- ``clocks``: instants in another zone than they are read in; clocks that differ too much; an instant in the future.
- ``listings``: orphan files; what the metadata table lists wrongly; indexes that are empty, damaged, behind, or may
  lack rows.
- ``stored_files``: base files that lost bytes, are copies, or label timestamps wrongly; buckets with several file
  groups; corrupt log blocks and torn ends of log files.
- ``compression``: what zstd would save on the base files, measured on a sample.
- ``wheels``: which distributions the driver and the executors need, and which are missing.

Elsewhere, in ``hudi_core``: which file is an orphan is in ``services/archive/listing``; whether a corrupt block lost
rows in ``filegroup/read/torn_tails``; whether an owner is dead in ``transaction/claim_file``; what an index may lack in
``metadata_table/read/completeness``.
"""
