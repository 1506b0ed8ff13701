"""The content of timeline files as values: plans and metadata, checked when they are decoded.

- ``content``: what a reader does with a half-written file; which file names in a plan are safe; what is done about a
  member of the wrong type; JSON and Avro as Hudi writes them.
- ``commit``: the metadata of a commit; which commit replaced a file group; the inflight file of a write; how many rows
  and bytes a commit wrote.
- ``write_stats``: what a commit says of each file; how members that are not known are kept.
- ``compaction``: the plan of a compaction or a log compaction; which files an operation may name; how the metrics of a
  slice are computed.
- ``replacecommit``: the plan of a clustering, and which files it may name; whether a requested file is of a clustering
  or an overwrite; the pending files and the token of an overwrite.
- ``clean``: the plan of a clean, and which files it may name; what a clean deleted; where the next clean starts.
- ``rollback``: plans and metadata of rollbacks and restores, and savepoints; whether Hudi or this engine made a plan;
  whether the instant was completed when planned.
- ``indexing``: the plan and the metadata of an indexing; which partitions it may name.

Elsewhere: which partition paths are safe is in ``model/partition``; whether a plan names the slices that the table had
is in ``filegroup/read/planned_slices``; which file groups a pending plan occupies, in ``timeline/pending_plans``.
"""
