"""What rolls back writes that failed, the newest commit, or a dead attempt at a plan.

- ``verb``: what the rollback of a named instant comes to, and which comes next where none is named; that only writes,
  compactions and clusterings can go; when a write that died is completed instead.
- ``failed_writes``: which writes have failed by the policy; which rollbacks have died; which pending rollback or
  restore may roll commits back, and how that is finished.
- ``checks``: which instants may not be rolled back: by savepoints, later commits, plans, cleans or indexes since.
- ``files_to_roll_back``: which files of an instant go, by markers or by listing; which log files get a command block,
  and which must stay, as other commits have rows in them.
- ``execution``: when a rollback's plan is dropped, as the write has completed; when the instant counts as pending
  again; whether it keeps its plan.
- ``job``: how a pending rollback is finished; what becomes of one whose plan cannot be read; which late files, markers
  and claims go; when a run of ours keeps a rollback back.
- ``failed_attempt``: what a dead attempt at a plan left, and what of that goes, so that the plan can be run again.

Elsewhere: how files are deleted and blocks rolled back is in ``filegroup/write/rollback_files``; whether a writer is
dead in ``transaction/writer_heartbeats``; what the metadata table can roll back in ``metadata_table/write/rollback``.
"""
