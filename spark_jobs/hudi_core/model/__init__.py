"""Checks and parses the names and paths that a table holds, and bounds the sizes of its files. Nothing here does I/O.

- ``names``: the names of data files and of claims, the order of log files, and files of other writers than Hudi, which
  are refused; which column a name means, whatever its case.
- ``partition``: which partition paths and file names are safe, how deep folders may nest, partitions below others.
- ``size_limits``: how large a file, or a part of one in memory, may be; which limit a file has by its path.

Elsewhere: ``timeline/naming`` has the names of timeline files; ``timeline/actions/content`` says which file names in a
plan are safe; ``filegroup/read/partition_values`` reads the values in a partition path; ``codec/columns`` has dotted
names of columns.
"""
