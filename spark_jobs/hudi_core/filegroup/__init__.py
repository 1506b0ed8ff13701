"""Reads the files of a file group, merges the versions of a row, and writes new files.

- ``read/``: which log blocks count; how a file slice becomes rows; the columns of a query; the table's schema.
- ``merge/``: which version of a row wins; which rule a table has; how ordering values compare; memory of a merge.
- ``write/``: keys and partition paths of new rows; base files; copies of log records; markers; files of a rollback.

Elsewhere: the names of data files are in ``model/names``; which files a slice has is in ``view/slicing``, and which
slice a query reads in ``view/file_system_view``.
"""
