"""Who may run an instant, who has the lock, which commits conflict, and that an instant completes once.

- ``owner``: which process has a claim or a lock, and when it is provably dead; that a damaged claim or lock is refused.
- ``claim``: how a process becomes the owner of an instant, when it has lost it, and what its release leaves.
- ``claim_file``: when the owner of a claim is dead, and when an instant is free; who is first, an owner that decides to
  complete it or its successor; when claims are removed.
- ``heartbeat_thread``: that a heartbeat goes on, and when it has failed; how old a sign of life is, by the storage's
  clock; that waits end when the job is stopped.
- ``writer_heartbeats``: when a writer of Hudi may be alive, and when a pending write has failed; whether the owner of
  an overwrite of this engine is dead; which pending instants only came with a copy of the table.
- ``conflict``: with which others a commit is compared, by strategy and release of Hudi, and whether they conflict.
- ``concurrent_operations``: which file groups those others write, by the timeline; whose markers stop an instant before
  its work.
- ``commit``: the only place where an instant completes: in which order, what becomes of an earlier owner's decision,
  and that no rollback came in between.
- ``reconcile``: which files the attempts at an instant left, and which of them no commit may contain.
- ``instant_generator``: a new instant time or completion time, and how long other clocks are waited for.
- ``file_group_locks``: when the lock of a file group is free, and that a service gets all of its locks or none.
- ``locks/``: the lock of the table: which one it has, how it is taken, and when a dead holder's is free.

Elsewhere: how long a heartbeat may be silent is in ``config/concurrency_config``; with whom a service conflicts in
``services/rewriting/other_writers``; why a decision is abandoned in ``services/decided_completion``; how a late task
deletes its file in ``filegroup/write/markers``.
"""
