"""Reads and writes HFiles of version 3, in which the metadata table keeps its records.

- ``reader``: which blocks a lookup by keys or prefixes reads; how often it gives a repeated key; which indexes are
  refused: one that goes back, and one with another number of entries than the trailer says.
- ``trailer``: whether a file ends as a whole HFile; other versions and encrypted files are refused; file info.
- ``block``: the form of blocks, index entries and cells: checksums, which compressions are read, how long a key may be.
- ``cells``: the cells of a block, and those with given keys; when NumPy finds them, and when a loop does.
- ``writer``: when a block is full, which cell has a block for itself, the order of keys; which cells of another file
  are copied as they are.

Elsewhere: which file group has a key is in ``codec/hashing``; the keys of records in ``metadata_table/keys``; a file
that is missing or cut in ``metadata_table/read/whole_files``; how large a block may be in ``model/size_limits``.
"""
