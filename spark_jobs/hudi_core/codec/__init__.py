"""Converts between the bytes of Hudi's file formats and rows or values. No module here opens a storage.

- ``log/``: log files: when a block is corrupt, deletes and their ordering values, the positions of records.
- ``avro/``: Avro schemas, plans and records: which schemas are refused, how columns of older types are read, defaults.
- ``parquet/``: base files: batches of rows, pages, encodings, the calendar of dates, row groups that are copied.
- ``hfile/``: base files of the metadata table: lookups by key or prefix, when a block is full, which codecs are read.
- ``orc``: base files in ORC, which are only read: the moment of a timestamp by the writer's zone; the size of a stripe.
- ``bloom``: the Bloom filter of a base file: which filter a footer has, when it grows, when two filters can be joined.
- ``hashing``: which file group of a metadata partition has a key; the hashes of names; the checksums of HFile blocks.
- ``columns``: which column a dotted name means, in any case; the leaf columns of a type; which columns have a NaN.
- ``gzip``: which library compresses gzip when none is named, and which levels each library has.
- ``binary``: numbers and protobuf fields of untrusted bytes: a read past the end is an error that names the file.

Elsewhere: the largest file, block or page is in ``model/size_limits``; which log blocks count in
``filegroup/read/log_scan``; names of one column that differ in case in ``model/names``; which columns have statistics
in ``metadata_table/indexed_table``.
"""
