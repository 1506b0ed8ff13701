"""The command line, hudictl: how arguments become requests, and results become text; and the process beside a task.

- ``main``: which commands there are; which exit code and message each outcome has.
- ``options``: how TABLE, storage options and ``K=V`` are read; that an option is given once; options that commands
  share.
- ``verb_commands``: ``schedule``, ``rollback``, ``restore``, ``savepoint``, ``unschedule``, ``takeover``,
  ``insert-overwrite`` and ``delete-partition``: their arguments and help.
- ``run_command``: ``run``: which options exclude each other; what is printed and returned for several tables.
- ``metadata_commands``: ``metadata create``, ``update``, ``drop``, ``validate`` and ``perf``; how differences are
  shown.
- ``doctor_commands``: ``doctor`` and ``probe-store``: how findings are shown; which verdict ends with exit code 1.
- ``inspect_commands``: ``timeline``, ``show``, ``files`` and ``plan``: what is shown of instants, slices and due
  services.
- ``read_command``: ``read``: where ``--output`` may write; that the file appears whole or not at all.
- ``command_from_fields``: the command of a verb for which no other module here has one, by the fields of its class.
- ``runner``: on which engine a command runs, and when Spark is started; how progress is shown.
- ``output``: what goes to stdout and what to stderr; the JSON form of a value; that control characters are escaped.
- ``tables``: how tables look in a narrow terminal; rows of a query as a table, CSV or JSON.
- ``verb_output``: the sentences that say what a verb did or would do.
- ``job``: a job without Spark, beside an Airflow task: which errors are left to Spark; when it ends by itself.

Elsewhere: what is left to Spark is decided in ``hudi_core/driver``; the fields of a verb are in ``hudi_core/verbs``;
which errors have which exit code is in ``hudi_core/errors``.
"""
