"""How the metadata table is read, which of its files and log blocks count, and which indexes can be believed.

- ``metadata_table``: the queries: files, statistics, filters, places of keys; which indexes exist or are in doubt.
- ``snapshot``: the metadata table as of one data timeline: partitions, log blocks, index builds, changes since.
- ``partition``: the file groups that are read for a key or a prefix; a missing file group is an error.
- ``file_group``: the file slice that readers merge, and the file slice that new log files join; the next log file's
  name; the blocks of an instant that count; a damaged block is an error.
- ``group_reader``: the records of one file group: the order in which they merge, and what a delete drops.
- ``whole_files``: whether a file of the metadata table is missing or too short, by the commits that wrote it.
- ``completeness``: what an index may lack, as Hudi left it: rows, keys, ranges; the writes that are missing.
- ``row_level``: where the row of a key is; the record keys that have a value of a column; the keys that keep their
  place after an overwrite, and those that are refused.
- ``statistics``: column statistics as Arrow tables: the type of the bounds, and the records that are looked up.

Elsewhere: ``metadata_table/instants`` says which instants count; ``view/listing`` says whether a data file is whole;
``services/metadata/catch_up`` adds to an index what it lacks.
"""
