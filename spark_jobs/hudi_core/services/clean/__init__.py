"""Deletes old file slices.

- ``retention``: when a clean is due, which commit is the earliest that it retains, which partitions it looks at,
  which slices of a file group go, and when a whole partition goes.
- ``kept_files``: which files savepoints and pending plans keep; whether a stored plan may still delete its files;
  which folders of empty partitions are deleted.
- ``planner``: which clean counts as the last one; when failed writes are rolled back first; when a plan is made again
  because the table changed meanwhile.
- ``job``: how the files of a plan are spread over tasks; the proof that all of them are gone; what happens to an empty
  plan, and to a clean that no run would finish.

Elsewhere: the files of a savepoint are in ``services/restore/savepoint``; failed writes in
``services/rollback/failed_writes``; the clean of the metadata table in ``metadata_table/services/table_services``.
"""
