"""How the job of a task is run, repeated and resumed.

- ``engine_job``: the steps of a job by the task's engine: look first, run here, submit the rest; how the results of
  both are joined.
- ``spark_job``: the process of spark-submit: the address of the cluster; the arguments of the hook that are refused;
  the places of its result and its logs.
- ``waiting``: how long a task waits for others, and when it tries again; when its work is done; how long an owner may
  show no sign of life.
- ``rounds``: the runs of many tables: how many bytes each may rewrite; which runs are in the next round; what earlier
  tries did.
- ``task_store``: what a task keeps between its tries, and when this is deleted.

Elsewhere: the instant that a retry resumes is in ``operators/service``; the meaning of an exit code in ``task_fate``;
the arguments of spark-submit in ``hudi_submit/spark_submit``; the end of a job's process in
``hudi_submit/local_process``; the rule for a dead owner in ``hudi_core/transaction/claim_file``.
"""
