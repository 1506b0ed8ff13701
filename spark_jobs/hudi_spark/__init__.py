"""The engine on Spark, by DataFrames and ``mapInArrow`` alone: jobs, sessions, tasks, and reads as a DataFrame.

- ``job``: a Spark job from its request to its exit code: that bad input is refused before executors are requested;
  where a named result is written.
- ``session``: how a session is opened: local, on a cluster, or by Spark Connect; which configuration it has by default.
- ``engine``: how units and exchanges become one Spark job; when a session is opened, probed and stopped; how many rows
  a batch may have.
- ``tasks``: what a task runs: units and both sides of an exchange; which errors Spark tries again and which it does
  not; how errors and progress reach the driver.
- ``failure``: which error a failure of Spark becomes (the task's, a missing module, another Python), and its remedy.
- ``probe``: which of the needed modules the executors have, before anything is written; which only make work slower.
- ``staged_rows``: the rows of a query or a DataFrame as Parquet files, for an overwrite; which are refused.
- ``overwrite``: an overwrite by a DataFrame, called from a user's Spark job.
- ``table``: a table as a lazy DataFrame; which Spark type a column has.
- ``read``: which splits share a task, and how a task reads them.
- ``signals``: that SIGTERM ends a run in order, with which exit code; what a process of ours logs.

Elsewhere: which modules are needed is in ``hudi_core/config/engine_config``; which engine runs a plan in
``hudi_core/services/engine_choice``; what spark-submit is given in ``hudi_submit/spark_submit``.
"""
