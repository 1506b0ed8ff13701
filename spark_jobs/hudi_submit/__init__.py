"""Starts a job and reads its result, without Airflow and without pyspark.

- ``local_process``: the process of the local engine beside a task: its input, how it gets credentials, and how a job
  and its children are stopped.
- ``spark_submit``: the request as an argument that arrives unchanged, and how long it may be; the parts of a batch; the
  name of the application; the environment of spark-submit and of the driver.
- ``class_archive``: writes the archive of Spark's loaded classes, with which Spark starts faster.
- ``zip``: which packages the job zip contains, and when it is built; where ``main.py`` is.
- ``job_files``: the job's files on a storage that a cluster reads, named by content; the wheel.
- ``job_log``: how a job's output is logged, line by line; the job's result, from its output or from its file.

Elsewhere: the choice between the two processes is in ``airflow_hudi/jobs/engine_job``; the process of spark-submit in
``airflow_hudi/jobs/spark_job``; the form of the result in ``hudi_core/request/results``.
"""
