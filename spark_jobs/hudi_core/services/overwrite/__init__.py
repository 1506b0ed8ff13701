"""Replaces partitions by the rows of a source, or by none (insert overwrites and partition deletes).

- ``plan``: which partitions and file groups are replaced; what stops that: plans, and later commits.
- ``job``: what must still hold at the commit; the proof that all counted rows were written.

Elsewhere: ``services/write`` reads and writes the rows, does the work of a token once, and says what stops overwrites
and writes of rows alike: another schema, other buckets.
"""
