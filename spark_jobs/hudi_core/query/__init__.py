"""Plans a query and reads its splits: snapshot, read-optimized, as of a time, incremental, change data.

- ``request``: which queries there are, and which times each of them takes.
- ``context``: whether the metadata table or the storage lists the files; what happens when the metadata table cannot be
  read; which log blocks and which older schemas a query sees.
- ``plan``: which instant a query as of a time reads, and whether the table still has it, or a clean removed it.
- ``slices_plan``: how a predicate reaches the reader; from how many partitions on a query does not list those that its
  predicate excludes.
- ``commit_range``: which commits an incremental or a change-data query reads; what a pending commit before them does;
  whether compactions and clusterings count; when the archive is read.
- ``incremental``: which rows of these commits are returned; which file groups are read as a whole; what happens when a
  file was cleaned; whether replaced rows are reported.
- ``cdc_plan``: which slices are before and after a change; when change-data logs are used; which commits change no row.
- ``cdc_read``: whether a row is new, changed or deleted, and its images; a key that a slice has several times; the
  columns of change data.
- ``json_text``: how the images of rows are written as JSON, type by type.
- ``read_plan``: what a split says, and how it is read; how rows that an overwrite replaced are marked.
- ``show``: which instant a few digits mean, and which of several actions at one instant; for people.

Elsewhere: ``filegroup/read/read_spec`` has the columns of a query; ``index/skipping`` finds the files that a predicate
excludes; ``expr/sql`` reads a predicate from SQL text; ``timeline/instant_time`` gives the instant that a date means.
"""
