"""The operators: what each does, what its XCom holds, and what a retry finds or resumes.

- ``base``: the arguments of all operators; whether the argument, the connection or the configuration names the engine;
  how a task without work ends; events and metrics of a success.
- ``service``: clean, clustering, compaction, log compaction, indexing: which instant is run (an earlier try's, a
  pending one, or a new plan); whether others completed it.
- ``archive``: the archival, which is planned and done at once; which instants count as archived by this task.
- ``rollback``: rolls back every failed write, or one by name; which rollbacks are this task's; a write that completes
  meanwhile is kept.
- ``create``: makes a table; which mistakes in its arguments are found in the DAG file.
- ``write``: ``write``, and what overwrites by rows share with it: where the rows come from; the wait for a source.
- ``overwrite``: ``insert_overwrite`` and ``delete_partition``.
- ``tokens``: the token of a data interval, so that its work is done once; what the XCom says of work done before.
- ``table_services``: services of many tables as one job: which runs there are, by names or by policy; when the task
  fails.
- ``repair``: savepoints, restore, takeover and unschedule: when a refused retry counts as done.
- ``metadata``: create, update, drop or validate the metadata table; whether differences fail the task.
- ``doctor``: doctor and probe-store: which findings, or which verdict, fail the task.
- ``alert``: which pending instants of many tables are reported as overdue.

Elsewhere: the meaning of an exit code for a task is in ``task_fate``; the wait for others in ``jobs/waiting``; the
numbers of an XCom in ``results``; the check of arguments in a DAG file in ``arguments``.
"""
