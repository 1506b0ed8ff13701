"""A process that holds one version of real Apache Hudi on Spark, and answers one JSON request a line.

A JVM holds one Hudi version only, and a session takes long to start: the tests keep one worker per version and send it
all their questions. Started by tests/interop/real_hudi.py as `worker.py JAR VERSION`; everything the JVM prints goes to
stderr.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from typing import Any

COMPACTION_STATES = (".compaction.requested", ".compaction.inflight")


def start_session(jar: str, cores: str, memory: str) -> Any:
    from pyspark.sql import SparkSession

    more = json.loads(os.environ.get("REAL_HUDI_SESSION") or '{"jars": [], "conf": {}}')
    options = {
        **more["conf"],
        "spark.jars": ",".join([jar, *more["jars"]]),
        # Avro looks for the classes of delete blocks by its own class loader, which does not see `spark.jars`.
        "spark.driver.extraClassPath": os.pathsep.join([jar, *more["jars"]]),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="hudi-warehouse-"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.default.parallelism": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Hudi sends file system views to executors with their locks, which Kryo cannot open on Java 17 otherwise. To
        # verify the bytes of classes takes a twentieth of the CPU time of a short session.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms1g -Xmn600m "
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
        "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("real-hudi")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(os.environ.get("REAL_HUDI_LOG", "OFF"))
    return session


def parsed_properties(text: str) -> dict[str, str]:
    properties = {}
    for line in text.splitlines():
        if not line.startswith("#") and "=" in line:
            key, value = line.strip().split("=", 1)
            properties[key] = value.replace("\\:", ":").replace("\\=", "=")
    return properties


class Worker:
    """The verbs that a test may ask for; each takes the table's base path and plain values."""

    def __init__(self, jar: str, version: str) -> None:
        self.version = version
        self.spark = start_session(
            jar, os.environ.get("REAL_HUDI_CORES", "1"), os.environ.get("REAL_HUDI_MEMORY", "2g")
        )
        self.jvm = self.spark._jvm
        if version == "1.2.0":
            # Else all writes of a JVM fail whose first work is to compact a metadata table
            # (docs/reference/hudi-notes.md).
            self.jvm.java.lang.Class.forName("org.apache.hudi.metadata.HoodieMetadataPayload")

    def ping(self) -> str:
        return self.version

    def process(self) -> int:
        """The JVM's process id."""
        return int(self.jvm.java.lang.ProcessHandle.current().pid())

    def read(
        self, base: str, output: str, metadata: bool, options: dict[str, str] | None = None, where: str | None = None
    ) -> int:
        """Writes the answer of a query to one parquet file; returns its number of rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyspark.sql.pandas.types import to_arrow_schema

        frame = self._frame(base, metadata, options)
        frame = (frame.where(where) if where else frame).repartition(1)
        batches = frame._collect_as_arrow()
        table = pa.Table.from_batches(batches) if batches else to_arrow_schema(frame.schema).empty_table()
        pq.write_table(table.replace_schema_metadata(None), output, coerce_timestamps="us")
        return int(table.num_rows)

    def _frame(self, base: str, metadata: bool, options: dict[str, str] | None = None) -> Any:
        chosen = {"hoodie.metadata.enable": str(metadata).lower(), **(options or {})}
        return self.spark.read.format("hudi").options(**chosen).load(base)

    def _properties(self, base: str) -> dict[str, str]:
        path = self.jvm.org.apache.hadoop.fs.Path(f"{base}/.hoodie/hoodie.properties")
        opened = path.getFileSystem(self.spark._jsc.hadoopConfiguration()).open(path)
        try:
            return parsed_properties(self.jvm.org.apache.commons.io.IOUtils.toString(opened, "ISO-8859-1"))
        finally:
            opened.close()

    def _pinned(self, base: str) -> dict[str, str]:
        """Options that keep a table at its own version when a newer Hudi writes to it."""
        if self.version.startswith("0."):
            return {}
        return {
            "hoodie.write.table.version": self._properties(base)["hoodie.table.version"],
            "hoodie.write.auto.upgrade": "false",
        }

    def _client(self, base: str, options: dict[str, str]) -> Any:
        properties = self._properties(base)
        chosen = {
            "hoodie.auto.commit": "true",
            "hoodie.embed.timeline.server": "false",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.datasource.write.recordkey.field": properties.get("hoodie.table.recordkey.fields", ""),
            **self._pinned(base),
            **options,
        }
        java = self.jvm.java.util.HashMap()
        for key, value in chosen.items():
            java.put(key, str(value))
        scala = self.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java)
        return self.jvm.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient(
            self.spark._jsparkSession, base, scala, self.jvm.scala.Option.empty()
        )

    def schedule_compaction(self, base: str, options: dict[str, str] | None = None) -> str | None:
        client = self._client(base, {"hoodie.compact.inline.max.delta.commits": "1", **(options or {})})
        try:
            instant = client.scheduleCompaction(self.jvm.org.apache.hudi.common.util.Option.empty())
            return instant.get() if instant.isPresent() else None
        finally:
            client.close()

    def compact(self, base: str, instant: str, options: dict[str, str] | None = None) -> None:
        client = self._client(base, options or {})
        try:
            if self.version.startswith(("0.", "1.0")):
                client.compact(instant)
            else:
                client.compact(instant, True)
        finally:
            client.close()

    def service(
        self, base: str, name: str, instant: str | None = None, options: dict[str, str] | None = None
    ) -> str | None:
        """One call of the write client; returns the instant that it scheduled."""
        client = self._client(base, options or {})
        nothing = self.jvm.org.apache.hudi.common.util.Option.empty()
        calls = {
            "schedule_compaction": lambda: client.scheduleCompaction(nothing),
            "schedule_clustering": lambda: client.scheduleClustering(nothing),
            "schedule_log_compaction": lambda: client.scheduleLogCompaction(nothing),
            "cluster": lambda: client.cluster(instant, True),
            "log_compact": lambda: (
                client.logCompact(instant)
                if self.version.startswith(("0.", "1.0"))
                else client.logCompact(instant, True)
            ),
            "clean": client.clean,
            "archive": client.archive,
            "rollback": lambda: client.rollback(instant),
            "savepoint": lambda: client.savepoint(instant, "test", "test"),
            "restore": lambda: client.restoreToSavepoint(instant),
        }
        try:
            given = calls[name]()
            return given.get() if name.startswith("schedule_") and given.isPresent() else None
        finally:
            client.close()

    def write(self, base: str, operation: str, parquet: str, options: dict[str, str] | None = None) -> None:
        """Writes the rows of a parquet file (the table's own columns) with the given operation."""
        properties = self._properties(base)
        partitions = ",".join(
            field.split(":")[0] for field in properties.get("hoodie.table.partition.fields", "").split(",") if field
        )
        ordering = properties.get("hoodie.table.precombine.field") or properties.get("hoodie.table.ordering.fields")
        chosen = {
            "hoodie.table.name": properties["hoodie.table.name"],
            "hoodie.datasource.write.table.type": properties["hoodie.table.type"],
            "hoodie.datasource.write.recordkey.field": properties.get("hoodie.table.recordkey.fields", ""),
            "hoodie.datasource.write.partitionpath.field": partitions,
            "hoodie.datasource.write.operation": operation,
            "hoodie.embed.timeline.server": "false",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.delete.shuffle.parallelism": "1",
            **({"hoodie.datasource.write.precombine.field": ordering} if ordering else {}),
            **(
                {"hoodie.datasource.write.keygenerator.class": c}
                if (c := properties.get("hoodie.table.keygenerator.class"))
                else {}
            ),
            **(
                {"hoodie.datasource.write.payload.class": c}
                if (c := properties.get("hoodie.compaction.payload.class"))
                else {}
            ),
            **self._pinned(base),
            **(options or {}),
        }
        self.spark.read.parquet(parquet).coalesce(1).write.format("hudi").options(**chosen).mode("append").save(base)

    def create(self, base: str, parquet: str, options: dict[str, str]) -> None:
        """Creates a table at `base` with the rows of a parquet file."""
        self.spark.read.parquet(parquet).coalesce(1).write.format("hudi").options(**options).mode("overwrite").save(
            base
        )

    def append(self, base: str, parquet: str, options: dict[str, str]) -> None:
        """Writes the rows of a parquet file to a table that is there, by these options alone."""
        self.spark.read.parquet(parquet).coalesce(1).write.format("hudi").options(**options).mode("append").save(base)

    def sql(self, statement: str) -> None:
        """Runs one SQL statement for what it does."""
        self.spark.sql(statement).collect()

    def validate_metadata(self, base: str) -> dict[str, Any]:
        """Hudi's own comparison of the metadata table's listing with the storage: how many files, and those that
        differ.
        """
        name = "t_" + hashlib.md5(base.encode()).hexdigest()[:10]
        self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        self.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{base}'")
        rows = [
            row.asDict()
            for row in self.spark.sql(
                f"CALL validate_metadata_table_files(table => '{name}', verbose => true)"
            ).collect()
        ]
        wrong = [
            row
            for row in rows
            if not (
                row["is_present_in_fs"] and row["is_present_in_metadata"] and row["fs_size"] == row["metadata_size"]
            )
        ]
        return {"files": len(rows), "wrong": json.loads(json.dumps(wrong, default=str))}

    def skipping(self, base: str, predicates: list[str], options: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """For each predicate: its rows, whether they are the same with the metadata table as without, and how many file
        slices were scanned with it.

        An index that fails raises here; a reader's default is to go on without it.
        """
        from pyspark.sql.functions import array, expr, struct

        self.spark.conf.set("hoodie.fileIndex.dataSkippingFailureMode", "strict")
        answers = [expr(predicate).alias(f"answer_{number}") for number, predicate in enumerate(predicates)]
        rows = (
            self._frame(base, metadata=False)
            .select(struct("*").alias("row"), array(*answers).alias("answers"))
            .collect()
        )
        given = {
            "hoodie.enable.data.skipping": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            **(options or {}),
        }
        indexed = self._frame(base, True, given)
        found = []
        try:
            for number, predicate in enumerate(predicates):
                chosen = indexed.where(predicate)
                try:
                    theirs = sorted(map(str, chosen.collect()))
                except Exception as error:  # noqa: BLE001 - the answer carries it to the test
                    found.append(
                        {"where": predicate, "rows": 0, "same": False, "slices": 0, "error": f"{error}"[:2000]}
                    )
                    continue
                due = sorted(str(row["row"]) for row in rows if row["answers"][number])
                found.append(
                    {"where": predicate, "rows": len(due), "same": theirs == due, "slices": self._scanned(chosen)}
                )
        finally:
            self.spark.conf.unset("hoodie.fileIndex.dataSkippingFailureMode")
        return found

    def _scanned(self, frame: Any) -> int:
        """The file slices that the executed plan of a query scanned. 0.15.0's relation of logs has no metric of them,
        but a partition for each.
        """
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
        found = 0
        for leaf in (leaves.apply(number) for number in range(leaves.size())):
            metric = leaf.metrics().get("numFiles")
            found += int(metric.get().value()) if metric.isDefined() else int(leaf.execute().getNumPartitions())
        return found

    def record_locations(self, base: str, keys: list[str], index: str | None = None) -> list[list[str]]:
        """What the record index says of record keys, or, of the values of a secondary `index`, both together: key,
        partition, file id, instant.
        """
        metadata, requested = self._metadata(base), self._java_list(keys)
        if self.version.startswith(("0.", "1.0")):
            found = (
                metadata.readRecordIndex(requested) if index is None else metadata.readSecondaryIndex(requested, index)
            )
            pairs = list(found.entrySet())
        else:
            data = self.jvm.org.apache.hudi.common.data.HoodieListData.eager(requested)
            both = (
                metadata.readRecordIndexLocationsWithKeys(data)
                if index is None
                else metadata.readSecondaryIndexLocationsWithKeys(data, index)
            )
            pairs = list(both.collectAsList())
        places = [(pair.getKey(), pair.getValue()) for pair in pairs]
        return sorted(
            [str(key), place.getPartitionPath(), place.getFileId(), place.getInstantTime()] for key, place in places
        )

    def bloom_answers(self, base: str, files: list[list[str]], keys: list[str]) -> list[list[str] | None]:
        """For each [partition, file name]: those of the keys that its filter in the metadata table may hold, None
        without one.
        """
        metadata = self._metadata(base)
        filters = [metadata.getBloomFilter(partition, name) for partition, name in files]
        return [[key for key in keys if item.get().mightContain(key)] if item.isPresent() else None for item in filters]

    def _metadata(self, base: str) -> Any:
        """Hudi's reader of the metadata table."""
        hudi = self.jvm.org.apache.hudi
        conf = hudi.storage.hadoop.HadoopStorageConfiguration(self.jvm.org.apache.hadoop.conf.Configuration())
        engine = hudi.common.engine.HoodieLocalEngineContext(conf)
        config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        return hudi.metadata.HoodieBackedTableMetadata(
            engine, hudi.storage.HoodieStorageUtils.getStorage(base, conf), config, base
        )

    def _java_list(self, values: list[str]) -> Any:
        found = self.jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return found

    def lock(self, options: dict[str, str]) -> bool:
        """Takes a lock by the provider that the options name, as Hudi's LockManager does; False when another has it."""
        java = self.jvm
        properties = java.org.apache.hudi.common.config.TypedProperties()
        prefix = "hoodie.write.lock."
        defaults = {
            "filesystem.expire": "0",
            "wait_time_ms_between_retry": "1000",
            "max_wait_time_ms_between_retry": "16000",
            "num_retries": "15",
        }
        for key, value in ({prefix + name: value for name, value in defaults.items()} | options).items():
            properties.setProperty(key, value)
        configuration = java.org.apache.hudi.common.config.LockConfiguration(properties)
        storage = java.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(
            java.org.apache.hadoop.conf.Configuration()
        )
        provider: Any = java
        for part in options["hoodie.write.lock.provider"].split("."):
            provider = getattr(provider, part)
        self.held = provider(configuration, storage)
        try:
            return bool(
                self.held.tryLock(
                    int(options["hoodie.write.lock.wait_time_ms"]), java.java.util.concurrent.TimeUnit.MILLISECONDS
                )
            )
        except Exception as error:
            if "FAILED_TO_ACQUIRE" not in str(error):
                raise
            return False

    def unlock(self) -> None:
        """Gives the lock of `lock` back."""
        self.held.unlock()
        self.held.close()

    def count_under_lock(self, options: dict[str, str], counter: str, turns: int) -> None:
        """Adds one to the number in a file, by reading and writing it, under the lock of `lock`."""
        for _ in range(turns):
            while not self.lock(options):
                time.sleep(0.005)
            with open(counter) as source:
                value = int(source.read())
            time.sleep(0.005)
            with open(counter, "w") as target:
                target.write(str(value + 1))
            self.unlock()

    def implicit_lock_path(self, address: str) -> str:
        """The base path in ZooKeeper that Hudi gives a table without one."""
        return str(
            self.jvm.org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider.getLockBasePath(
                address
            )
        )

    def read_lease(self, text: str) -> dict[str, Any]:
        """What Hudi reads in the object of its storage-based lock."""
        data = self.jvm.java.io.ByteArrayInputStream(text.encode())
        file = self.jvm.org.apache.hudi.client.transaction.lock.models.StorageLockFile.createFromStream(data, "etag")
        return {"expired": file.isExpired(), "validUntil": file.getValidUntilMs(), "owner": file.getOwner()}

    def write_lease(self, expired: bool, valid_until: int, owner: str) -> str:
        """The object of Hudi's storage-based lock."""
        models = self.jvm.org.apache.hudi.client.transaction.lock.models
        return bytes(models.StorageLockFile.toByteArray(models.StorageLockData(expired, valid_until, owner))).decode()

    def conflict_candidates(self, base: str, cases: list[list[Any]]) -> list[Any]:
        """For each [strategy, action, instant, last completed instant or None]: the instants that the strategy compares
        an inflight one with.

        Each as [instant, action, state, its partitions and file ids]; the text of Hudi's error where it fails.
        """
        hudi = self.jvm.org.apache.hudi
        storage = hudi.storage.hadoop.HadoopStorageConfiguration(self.jvm.org.apache.hadoop.conf.Configuration())
        client = hudi.common.table.HoodieTableMetaClient.builder().setConf(storage).setBasePath(base).build()
        return [self._candidates(client, *case) for case in cases]

    def _candidates(self, client: Any, strategy: str, action: str, instant: str, last: str | None) -> Any:
        from py4j.protocol import Py4JJavaError

        hudi = self.jvm.org.apache.hudi
        states = getattr(hudi.common.table.timeline, "HoodieInstant$State")

        def of(state: Any, name: str, time_: str) -> Any:
            if self.version.startswith("0."):
                return hudi.common.table.timeline.HoodieInstant(state, name, time_)
            return client.createNewInstant(state, name, time_)

        option = hudi.common.util.Option
        seen = option.empty() if last is None else option.of(of(states.COMPLETED, "deltacommit", last))
        chooser = getattr(hudi.client.transaction, strategy)()
        try:
            chosen = list(chooser.getCandidateInstants(client, of(states.INFLIGHT, action, instant), seen).iterator())
        except Py4JJavaError as error:
            return str(error.java_exception)
        found = []
        for other in chosen:
            groups = hudi.client.transaction.ConcurrentOperation(other, client).getMutatedPartitionAndFileIds()
            time_ = other.getTimestamp() if self.version.startswith("0.") else other.requestedTime()
            pairs = sorted([str(pair.getLeft()), str(pair.getRight())] for pair in groups)
            found.append([time_, other.getAction(), other.getState().toString(), pairs])
        return sorted(found)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(worker, request["verb"])(**request["arguments"])}
        except Exception as error:  # noqa: BLE001 - the answer carries it to the test
            answer = {"error": f"{type(error).__name__}: {error}"[:20000]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
