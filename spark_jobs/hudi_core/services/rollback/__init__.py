"""Rolls back writes that failed, the newest commit, or a dead attempt at a plan.

- ``verb``: what the rollback of a named instant does, and which instant is next where none is named; only writes,
  compactions and clusterings can be rolled back; when a write that died is completed instead.
- ``failed_writes``: which writes have failed by the policy; which rollbacks have died; which pending rollback or
  restore may roll commits back, and how to finish that.
- ``checks``: which instants may not be rolled back: by savepoints, later commits, plans, cleans or indexes since.
- ``files_to_roll_back``: which files of an instant are deleted, by markers or by listing; which log files get a command
  block; which log files must stay, because other commits have rows in them.
- ``execution``: when a rollback's plan is dropped, because the write has completed; when the instant counts as pending
  again; whether it keeps its plan.
- ``job``: how a pending rollback is finished; what happens to one whose plan cannot be read; which late files, markers
  and claims are deleted; when a run of this engine stops a rollback.
- ``failed_attempt``: what a dead attempt at a plan left, and what of that is deleted, so that the plan can be run
  again.

Elsewhere: ``filegroup/write/rollback_files`` deletes files and rolls blocks back; ``transaction/writer_heartbeats``
says whether a writer is dead; ``metadata_table/write/rollback`` says what the metadata table can roll back.
"""
