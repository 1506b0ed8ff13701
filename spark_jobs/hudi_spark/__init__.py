"""The engine on Spark, only by DataFrames and ``mapInArrow``: jobs, sessions, tasks, and reads as a DataFrame.

- ``job``: a Spark job from its request to its exit code; bad input is refused before executors are requested; where a
  named result is written.
- ``session``: how a session is opened: local, on a cluster, or by Spark Connect; its default configuration.
- ``engine``: how units and exchanges become one Spark job; when a session is opened, probed and stopped; how many rows
  a batch may have.
- ``tasks``: what a task runs: units and both sides of an exchange; after which errors Spark retries a task; how errors
  and progress reach the driver.
- ``failure``: which error a failure of Spark becomes (the task's, a missing module, another Python), and its remedy.
- ``probe``: which of the needed modules the executors have, before anything is written; which missing modules only make
  work slower.
- ``staged_rows``: the rows of a query or a DataFrame as Parquet files, for a write; which queries and functions are
  refused.
- ``write``: a write or an overwrite by a DataFrame, called from a user's Spark job.
- ``table``: a table as a lazy DataFrame; which Spark type a column has.
- ``read``: which splits share a task, and how a task reads them.
- ``signals``: how SIGTERM ends a run in order, and its exit code; what a process of ours logs.

Elsewhere: the list of needed modules is in ``hudi_core/config/engine_config``; the choice of the engine for a plan in
``hudi_core/services/engine_choice``; the arguments of spark-submit in ``hudi_submit/spark_submit``.
"""
