"""The command line, hudictl: how arguments become requests, and results become text; and the process beside a task.

- ``main``: the list of commands; the exit code and the message of each outcome.
- ``command_groups``: the help of a group; which verbs have a command of their own; when the module of a command is
  imported; the refusal of repeated options.
- ``options``: how TABLE, storage options and ``K=V`` are read; options that commands share.
- ``verb_commands``: ``schedule``, ``rollback``, ``restore``, ``savepoint``, ``unschedule``, ``takeover``, ``create``,
  ``write``, ``insert-overwrite`` and ``delete-partition``: their arguments and help.
- ``run_command``: ``run``: which options exclude each other; the output and the exit code for several tables.
- ``metadata_commands``: ``metadata create``, ``update``, ``drop``, ``validate`` and ``perf``; how differences are
  shown.
- ``doctor_commands``: ``doctor`` and ``probe-store``: how findings are shown; which verdict ends with exit code 1.
- ``inspect_commands``: ``timeline``, ``show``, ``files`` and ``plan``: the output about instants, file slices and due
  services.
- ``read_command``: ``read``: where ``--output`` may write; how the file appears whole or not at all.
- ``command_from_fields``: makes a command from the fields of a verb's class, if no other module here has one.
- ``runner``: on which engine a command runs, and when Spark is started; how progress is shown.
- ``output``: what goes to stdout and what to stderr; the JSON form of a value.
- ``console``: the escaping of control characters; the width without a terminal.
- ``tables``: how tables look in a narrow terminal; rows of a query as a table, CSV or JSON.
- ``verb_output``: the sentences that say what a verb did or would do.
- ``job``: a job without Spark, beside an Airflow task: which errors are left to Spark; when the job ends by itself.

Elsewhere: ``hudi_core/driver`` decides what is left to Spark; the fields of a verb are in ``hudi_core/verbs``; the exit
codes of errors in ``hudi_core/errors``.
"""
