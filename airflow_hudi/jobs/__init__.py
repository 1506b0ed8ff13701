"""How the job of a task is run, repeated and resumed.

- ``engine_job``: what each engine of a task does: look first, run here, submit what is left; how the results of both
  are joined.
- ``spark_job``: the process of spark-submit: where it is sent; which arguments of its hook are refused; where its
  result and its logs are.
- ``waiting``: how long a task waits for others, and when it tries again; when its work is done; how long an owner may
  show no sign of life.
- ``rounds``: the runs of many tables: how many bytes each may rewrite; which are in the next round; what earlier tries
  did.
- ``task_store``: what a task keeps between its tries, and when it is forgotten.

Elsewhere: which instant a retry resumes is in ``operators/service``; what an exit code means in ``task_fate``; what
spark-submit is given in ``hudi_submit/spark_submit``; what kills the process of a job in ``hudi_submit/local_process``;
when an owner is dead in ``hudi_core/transaction/claim_file``.
"""
