"""Restores a table to an earlier commit, and keeps the files of a commit for that (savepoints).

- ``candidates``: to which commits the table can be restored, and why not to the others; which instants are rolled back
  for that, and in which order; which is the oldest commit that no clean has taken files from.
- ``verb``: whether a restore goes on with a pending plan or makes one; which live writers stop it; what it does where
  nothing was written later.
- ``job``: which stored plans are refused; when the instants leave the timeline; when the metadata table is dropped
  instead of restored; what is cleaned up after a restore.
- ``savepoint``: which files a savepoint keeps; which commits cannot be kept; when an unfinished savepoint is removed.

Elsewhere: ``services/rollback/files_to_roll_back`` says which files of an instant are deleted; ``services/unschedule``
when a restore may be dropped; ``metadata_table/write/restore`` what of the metadata table goes back.
"""
