"""Checks and parses the names and paths that a table holds, and bounds the sizes of its files; nothing here does I/O.

- ``names``: the names of data files and of claims, the order of log files, and files of other writers than Hudi, which
  are refused; whether a name is that of a column, whatever its case.
- ``partition``: which partition paths and file names are safe, how deep folders may nest, partitions below others.
- ``size_limits``: how large a file, or a part of one in memory, may be; which limit a file has by its path.

Elsewhere: names of timeline files are in ``timeline/naming``; which file names in a plan are safe in
``timeline/actions/content``; the values in a partition path in ``filegroup/read/partition_values``; dotted names of
columns in ``codec/columns``.
"""
