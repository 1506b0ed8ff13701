"""What starts a job and reads what it reports, without Airflow and without pyspark.

- ``local_process``: the process of the local engine beside a task: what it is told, how its credentials reach it, and
  how a job and its children are ended.
- ``spark_submit``: the request as an argument that arrives whole, and how long it may be; into which parts a batch is
  cut; the name of the application; the environment of spark-submit and of the driver.
- ``zip``: which packages the job zip holds, and when it is built; where ``main.py`` is.
- ``job_files``: the job's files on a storage that a cluster reads, named by content; the wheel.
- ``job_log``: how a job's output is logged, line by line; its result, by the line or by the file that it left.

Elsewhere: which of the two processes is started is in ``airflow_hudi/jobs/engine_job``; the process of spark-submit in
``airflow_hudi/jobs/spark_job``; the form of the result in ``hudi_core/request/results``.
"""
