"""The Airflow provider: operators, sensors, triggers and assets. It imports neither pyspark nor pyarrow.

- ``arguments``: which mistakes are errors of a DAG file; how a verb's fields become arguments; how lists, flags and
  numbers are read.
- ``operators/``: the operators: what each does, what its XCom holds, and what a retry resumes.
- ``jobs/``: which engine runs a task's job; how a task waits for others; how its bytes are divided among tables;
  what is kept for retries.
- ``task_fate``: what an exit code or an error means for the task: done, waits, fails, fails for good.
- ``results``: the XCom of an instant, made from the timeline; the completed work that an XCom tells of.
- ``hooks``: the connection: the address of a table, how its storage is opened, its test; whether a connection is
  missing or a secrets backend cannot be asked.
- ``timeline_reader``: how a timeline is read repeatedly, with one listing each time; when an instant of layout 1
  completed; who runs an instant now.
- ``sensors``: the sensors: when a failed look is repeated, and when the wait is handed to the triggerer.
- ``conditions/``: when a sensor's wait is over; what counts as a write.
- ``triggers/``: waits in the triggerer, asset events of a timeline, and looks that triggers share.
- ``assets``: the address of a table's asset; which asset events a task makes; which partitions changed.
- ``lineage``: what OpenLineage records of a task: inputs, outputs, rows and bytes.
- ``metrics``: the metrics of a task's work; the age of the oldest pending instant; the lag of the metadata table.
- ``links``: the address of a table in its storage's console, and of the Spark application.
- ``notifier``: the message to a webhook about a task, its work, and the pending instants of its tables.
- ``maintenance_dag``: a DAG that maintains tables by their policies: its tasks, pools, and alerts.
- ``dag_params``: params and templates of the ready-to-use DAGs; which runs of them are allowed.
- ``submission/``: the job on other platforms that run Spark, and over Spark Connect.
- ``get_provider_info``: the description for Airflow; ``provider_info.json`` holds it, with the connection's form.

Elsewhere: the fields of a verb are in ``hudi_core/verbs``; the process beside a task, what spark-submit is given, and
the job zip in ``hudi_submit``; policies in ``hudi_core/config/policy_file`` and ``hudi_core/request/policy``.
"""
