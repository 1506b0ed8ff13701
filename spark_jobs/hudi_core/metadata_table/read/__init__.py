"""How the metadata table is read, which of its files and log blocks count, and which indexes can be believed.

- ``metadata_table``: what a query can ask: files of a partition, statistics, filters, the place of a key; whether the
  metadata table and an index are there, and when an index is in doubt.
- ``snapshot``: the metadata table as of one data timeline: which partitions are there, which log blocks readers count,
  when an index was built, and whether it is still there as it was read.
- ``partition``: which file groups are read for a key or a prefix, and that none of the numbered ones is missing.
- ``file_group``: the slice that readers merge, and the one that new log files join; the next log file's name; which
  blocks of an instant count, and that a damaged block is an error.
- ``group_reader``: the records of one file group: in which order they merge, and what a delete drops.
- ``whole_files``: whether a file of the metadata table is missing or too short, by the commits that wrote it.
- ``completeness``: what a listed index may lack, as Hudi's writers left it: rows, keys, ranges of partitions; which
  writes the metadata table lacks.
- ``row_level``: where the row of a key is; which record keys have a value of a column; which keys keep their place
  behind an overwrite, and which are refused.
- ``statistics``: column statistics as Arrow tables: of which type the bounds are, and which records are looked up.

Elsewhere: which instants count is in ``metadata_table/instants``; whether a data file is whole in ``view/listing``; how
an index gets what it lacks in ``services/metadata/catch_up``.
"""
