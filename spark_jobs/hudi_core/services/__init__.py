"""The services of a table: which instant a run takes, the steps of its run, and how a plan is freed or dropped.

- ``service``: what each service offers: its pending instants, a plan, a run; which class a service's name means.
- ``context``: a table as a service uses it: its lock, clock and claims; the owner and release that a commit records.
- ``runner``: which pending instants a run takes, whether it makes a plan, and where it ends (minutes, bytes); what
  happens to an instant that fails.
- ``policy``: which services are due by the conditions of a policy, and why; which commits count since the last run.
- ``engine_choice``: whether ``auto`` runs a plan here or on Spark; how many tasks run at once, and the memory of one.
- ``lifecycle``: the order of the steps from requested to completed; which run completed an instant; what is cleaned up
  after a run that died.
- ``decided_completion``: when a dead owner's decision to complete is abandoned, because it would lose rows.
- ``concurrent_changes``: which commits, rollbacks and pending plans of others stop the commit of a write or rewrite.
- ``takeover``: what waits for a pending instant, and which command helps; how an instant is freed of a dead owner.
- ``unschedule``: which plans can be dropped; what is deleted with a plan; when log files of other writes keep a plan.
- ``waiting``: which pending writes a change of an index waits for, for how long, and whose writers may be alive.

Folders, one for each service, or for code that several services share:

- ``create/``: how a table is made: its properties and its schema.
- ``compaction/``: compactions and log compactions: when they are due, which slices they take, how these are merged.
- ``clustering/``: when one is due, which slices it takes, in which groups, and which file gets which rows.
- ``write/``: writes of rows: bulk_insert, insert, upsert, delete: where rows go. Also what overwrites share with them.
- ``source/``: where the rows of a write come from, and whether they fit the table.
- ``overwrite/``: insert overwrites and partition deletes: what they replace.
- ``rewriting/``: what those four share: checks, other writers, budgets, new files, and the proof that no row is lost.
- ``clean/``: when a clean is due, what it deletes, and which files it must keep.
- ``archive/``: which instants leave the timeline for the archive, and what keeps the others.
- ``rollback/``: which writes have failed, which may be rolled back, and which files go; also a dead attempt at a plan.
- ``restore/``: to which commits the table can go back; savepoints, and the files that they keep.
- ``metadata/``: how the metadata table is created, updated and caught up; how indexes and columns are added or dropped.
- ``indexing/``: how an index is planned, and built while writers go on.

Elsewhere: ``request/services`` has the services' names and conditions; ``request/policy`` has the quiet hours;
``transaction/claim_file`` says whether an owner is dead; ``transaction/commit`` completes an instant once.
"""
