"""Submits the job to other platforms that run Spark, through the operators of their providers.

- ``platforms``: the arguments of the operators for Livy, EMR, EMR Serverless, Dataproc, Databricks and Kubernetes; how
  long a request each takes; the refusal of secrets in ``conf``.
- ``spark_connect``: the driver as a process beside the task, with a Spark Connect server; the form of its address and
  token.
- ``job_files``: the addresses of the job's files, which of them are valid, and how they are published.

Elsewhere: the list of the job's files is in ``hudi_submit/job_files``; the request as an argument in
``hudi_submit/spark_submit``; the submission by this provider's operators in ``jobs/spark_job``.
"""
