"""What hudictl, a Spark job and an operator can be told to do: one class of requests for each verb.

- ``registry``: which verbs there are.
- ``request``: what every request carries; which fields, versions and secrets are refused; where a named result is put;
  what a verb has to answer.
- ``run``: ``schedule`` and ``run``: which fields exclude each other; whether there is anything to do; what a dry run
  shows; how many of the minutes and bytes are left for Spark.
- ``write``: ``write``, ``insert_overwrite`` and ``delete_partition``: where rows may come from; what a token may be;
  which writes only Spark can do.
- ``create``: ``create``: which fields make a table; what a look finds of it.
- ``instants``: ``rollback``, ``restore``, ``savepoint_create`` and ``_delete``, ``takeover``, ``unschedule``: whether
  there is anything to do; when an instant must be named.
- ``metadata``: ``metadata_create``, ``_update`` and ``_drop``: when there is nothing to do; whether named columns start
  ``column_stats`` or are added to it; what the result names.
- ``batch``: in which order the requests of a job run, and how many tables at a time; which runs a policy makes; what a
  stopped job reports.

Elsewhere: ``hudi_health/verbs`` has ``doctor``, ``metadata_validate`` and ``probe_store``; ``services/`` does the work
of the verbs; ``services/runner`` says which instants a run covers, and where it ends; ``airflow_hudi/jobs/rounds`` how
a task divides its bytes among tables.
"""
