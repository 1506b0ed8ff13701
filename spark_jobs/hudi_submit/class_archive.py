"""`python -m hudi_submit.class_archive` writes the archive of the classes that Spark loads (class-data sharing of Java
13 and later). It takes 120 MB in the cache folder. Each later start of this Spark by hudictl or Airflow on this machine
takes a quarter less CPU time. A JVM uses no archive if the folder of Spark's configuration has files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hudi_core.errors import ConfigError
from hudi_core.request.java import JVM_OPTIONS, QUIET_ARCHIVE, class_archive, spark_environment
from hudi_submit.zip import publish_zip

_LOADS_CLASSES = """
from pyspark.sql import SparkSession
from hudi_spark.probe import probe_executors
spark = SparkSession.builder.getOrCreate()
probe_executors(spark)
spark.range(0, 4, 1, 2).repartition(2, "id").sortWithinPartitions("id").collect()
spark.stop()
"""


def write_archive() -> Path:
    """Runs Spark once, and returns the archive of its classes. Raises ConfigError if there is none afterwards."""
    environment = spark_environment()
    archive = class_archive(environment)
    if archive is None:
        message = "there is no Spark beside this Python, or not all of its jars and Java's release file can be read"
        raise ConfigError(message, remedy="pip install 'airflow-hudi-engine[spark3]'")
    archive.parent.mkdir(parents=True, exist_ok=True)
    # The JVM writes the file when it ends. Others must not see a part of it.
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".spark-classes-") as folder:
        script, new = Path(folder, "load.py"), Path(folder, "classes.jsa")
        script.write_text(_LOADS_CLASSES)
        options = f'"-XX:ArchiveClassesAtExit={new}" {QUIET_ARCHIVE}'
        program = str(Path(environment["SPARK_HOME"], "bin", "spark-submit"))
        command = [program, "--master", "local[2]", "--py-files", str(publish_zip()), str(script)]
        subprocess.run(command, env={**environment, JVM_OPTIONS: options}, check=False)
        if not new.is_file():
            remedy = "unset SPARK_CONF_DIR, HADOOP_CONF_DIR and YARN_CONF_DIR, and see the output above"
            raise ConfigError("Java wrote no archive of Spark's classes", remedy=remedy)
        new.replace(archive)
    return archive


def main() -> int:
    """Returns 0, or 2 if there is no archive."""
    try:
        archive = write_archive()
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{archive} {os.stat(archive).st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
