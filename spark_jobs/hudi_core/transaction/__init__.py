"""Who may run an instant, who has the table lock, which commits conflict, and how an instant completes only once.

- ``owner``: the process that has a claim or a lock, and when it is provably dead; a damaged claim or lock is refused.
- ``claim``: how a process becomes the owner of an instant, when it has lost the instant, and what its release leaves.
- ``claim_file``: when a claim's owner is dead or an instant free; whether owner or successor decides; removal.
- ``heartbeat_thread``: the heartbeat's thread and failure; the age of a sign of life; waits that end with the job.
- ``writer_heartbeats``: which writers of Hudi may live; failed writes; dead overwrites; instants of a copied table.
- ``conflict``: the operations that a commit is compared with, by strategy and release of Hudi; the conflicts.
- ``concurrent_operations``: what those operations write; markers that stop an instant before its work.
- ``commit``: the only place where an instant completes: the order, an earlier owner's decision, a rollback in between.
- ``reconcile``: the files that the attempts at an instant left, and those of them that no commit may contain.
- ``instant_generator``: a new instant time or completion time, and the wait for clocks that are behind.
- ``file_group_locks``: when the lock of a file group is free; a service gets all of its locks or none.
- ``locks/``: the lock of the table: which provider it has, how it is taken, and when the lock of a dead holder is free.

Elsewhere: ``config/concurrency_config`` says how long a heartbeat may be silent; ``services/rewriting/other_writers``
says with whom a service conflicts; ``services/decided_completion`` says why a decision is abandoned;
``filegroup/write/markers`` says how a late task deletes its file.
"""
