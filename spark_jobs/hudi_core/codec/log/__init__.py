"""Reads and writes log files: their blocks, and the records and deletes in them.

- ``blocks``: when a block is corrupt, and where the next block begins; block types; which headers Hudi 0.15 knows.
- ``content``: which versions of data and delete blocks are read; which kinds of ordering values a delete may have.
- ``delete_columns``: the deletes of a block as columns; how many ordering fields they may have; deletes that override
  every older record.
- ``positions``: for which rows of the base file a block has newer versions, and when these positions are broken.

Elsewhere: which blocks count is in ``filegroup/read/log_scan``; whether a corrupt block lost rows of a commit in
``filegroup/read/torn_tails``; whether rows are merged by position or key in ``filegroup/read/slice_reader``; the
records of a data block as rows in ``codec/avro/arrow``.
"""
