"""What compaction, clustering and overwrite share: how they plan, beside which writers they run, and what they write.

- ``planning``: when a plan is made again under the lock; which pending instants stop it; what a budget of bytes or time
  takes of a due plan; whether an earlier plan left something out.
- ``other_writers``: which pending writes may not see a plan, and so stop it or its run; which failed writes of EAGER
  writers do so; with which others a service conflicts.
- ``checks``: what must hold before a rewrite: formats, schema evolution, buckets; the planned files are there.
- ``job``: the stages of an attempt; which files of earlier or lost attempts are deleted, and when; which records for
  the metadata table are staged, here or by tasks; when an index that was added or dropped stops the commit.
- ``slice_rows``: how the rows of a planned slice are read and merged; which log blocks count; the check that all rows
  came.
- ``row_group_copies``: which row groups of a base file, and pieces of them, are copied without decoding.
- ``sort_order``: how rows are sorted in a clustering: by columns, z-order or a Hilbert curve; where nulls come.
- ``new_file_groups``: when a new file is full, and how it is named; which rows get the new commit time; the check that
  each partition has the rows that were read.
- ``proof``: the proof that each operation of a compaction has its file.
- ``row_sums``: the full proof, by the hashes of all rows.

Elsewhere: ``transaction/reconcile`` says which files a commit may contain; ``filegroup/read/planned_slices`` whether a
plan names whole slices; ``timeline/pending_plans`` which file groups a pending plan occupies.
"""
