"""How the job is given to other platforms that run Spark, through the operators of their providers.

- ``platforms``: the arguments of the operators for Livy, EMR, EMR Serverless, Dataproc, Databricks and Kubernetes; how
  long a request each takes; that ``conf`` holds no secret.
- ``spark_connect``: the driver as a process beside the task, with a Spark Connect server; how its address and token may
  be given.
- ``job_files``: the addresses of the job's files, which of them are valid, and how they are published.

Elsewhere: which files those are is in ``hudi_submit/job_files``; the request as an argument in
``hudi_submit/spark_submit``; the submission by this provider's operators in ``jobs/spark_job``.
"""
