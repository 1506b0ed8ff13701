"""Real Hudi 0.15.0 answers from a metadata table that we made: `python -m benchmarks.metadata_spark WORK FOLDER JSON`.

Prints a line of JSON, with the peak of the JVM's memory. Its own Java classes are called through the gateway of
PySpark, without a Spark session, and what they return stays in the JVM; a call of the gateway takes 0.3 ms or so, which
the times hold. The words cold, open, cached and cpu are those of benchmarks.metadata_process; processor time is that of
the Java thread that answers. The first turns, in which Java compiles, are not counted.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from benchmarks.measure import peak_mib
from benchmarks.metadata_process import BATCHES, FEW_TURNS, SINGLES, TURNS, VERBS
from benchmarks.metadata_tables import column_names, some_record_keys
from hudi_core.request.java import find_java
from tests.interop.bundle import bundle_jar

WARM_UP = 5


class RealHudi:
    """What opens a table's metadata table in the JVM."""

    def __init__(self, folder: Path) -> None:
        os.environ["JAVA_HOME"] = find_java()
        options = {
            "spark.jars": bundle_jar("0.15.0"),
            "spark.driver.memory": "8g",
            "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        }
        self._gateway = launch_gateway(
            SparkConf(loadDefaults=False).setAll([(name, str(value)) for name, value in options.items()])
        )
        self.jvm: Any = self._gateway.jvm
        hudi = self.jvm.org.apache.hudi
        self._base = str(folder)
        self._conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self.jvm.org.apache.hadoop.conf.Configuration())
        self._storage = hudi.storage.HoodieStorageUtils.getStorage(self._base, self._conf)
        self._context = hudi.common.engine.HoodieLocalEngineContext(self._conf)
        self._threads: Any = self.jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        self._config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()

    def table(self) -> Any:
        """HoodieBackedTableMetadata that keeps its readers open, as a long-lived reader's does."""
        return self.jvm.org.apache.hudi.metadata.HoodieBackedTableMetadata(
            self._context, self._storage, self._config, self._base, True
        )

    def view(self) -> Any:
        """A file-system view over a new meta client."""
        client = (
            self.jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(self._conf)
            .setBasePath(self._base)
            .build()
        )
        manager = self.jvm.org.apache.hudi.common.table.view.FileSystemViewManager
        return manager.createInMemoryFileSystemView(self._context, client, self._config)

    def path(self, partition: str) -> Any:
        """A partition's folder."""
        return self.jvm.org.apache.hudi.storage.StoragePath(self._base, partition)

    def texts(self, items: list[str]) -> Any:
        """A java.util.List of texts without line breaks, by one call."""
        return (
            self.jvm.java.util.regex.Pattern.compile("\n")
            .splitAsStream("\n".join(items))
            .collect(self.jvm.java.util.stream.Collectors.toList())
        )

    def listed(self, stream: Any) -> int:
        """How many a stream of the JVM gives, each of them made."""
        return int(stream.collect(self.jvm.java.util.stream.Collectors.toList()).size())

    def cpu_ms(self) -> float:
        """The processor time of the thread that answers this process so far, in milliseconds."""
        return float(self._threads.getCurrentThreadCpuTime()) / 1e6

    def peak_mib(self) -> int:
        """The most memory in MiB that was resident of the JVM."""
        return peak_mib(int(self.jvm.java.lang.ProcessHandle.current().pid()))

    def close(self) -> None:
        """Ends the JVM, which does when its input ends."""
        process = self._gateway.proc
        self._gateway.shutdown()
        process.stdin.close()
        process.wait()


class _Turns:
    """What a question took each time, by how it was asked, but for the first WARM_UP times."""

    def __init__(self, hudi: RealHudi) -> None:
        self._hudi = hudi
        self._taken: dict[str, list[tuple[float, float]]] = {}

    def take(self, name: str, work: Callable[[], Any]) -> Any:
        cpu, started = self._hudi.cpu_ms(), time.perf_counter()
        answer = work()
        wall = (time.perf_counter() - started) * 1000
        self._taken.setdefault(name, []).append((wall, self._hudi.cpu_ms() - cpu))
        return answer

    def figures(self, per: float = 1, *, cpu: Callable[[list[float]], float] = min) -> dict[str, Any]:
        counted = {name: times[WARM_UP:] for name, times in self._taken.items()}
        walls = {name: round(statistics.median(wall for wall, _ in times) / per, 3) for name, times in counted.items()}
        return {
            **walls,
            "cpu": {name: round(cpu([work for _, work in times]) / per, 3) for name, times in counted.items()},
        }


def _metadata_snapshot(table: Any, ask: Callable[[Any], Any]) -> Any:
    ask(table)
    return table


def _three(
    hudi: RealHudi, ask: Callable[[Any], Any], between: Callable[[Any], Any], per: float = 1, count: int = TURNS
) -> dict[str, Any]:
    turns = _Turns(hudi)
    for _ in range(WARM_UP + count):
        table = turns.take("cold", lambda: _metadata_snapshot(hudi.table(), ask))
        between(table)
        turns.take("open", lambda table=table: ask(table))  # type: ignore[misc]
        turns.take("cached", lambda table=table: ask(table))  # type: ignore[misc]
        table.close()
    return turns.figures(per)


def _same(found: int, requested: int) -> None:
    if found != requested:
        raise RuntimeError(f"real Hudi gives {found}, not {requested}")


def listing(hudi: RealHudi, requested: dict[str, Any]) -> dict[str, Any]:
    """All partitions, and the files of one, as benchmarks.metadata_process asks."""
    names = sorted(hudi.table().getAllPartitionPaths())
    _same(len(names), requested["partitions"])
    place, others = hudi.path(names[len(names) // 2]), [hudi.path(names[0]), hudi.path(names[-1])]
    _same(hudi.table().getAllFilesInPartition(place).size(), requested["files_of_the_partition"])

    def between(table: Any) -> None:
        for other in others:
            table.getAllFilesInPartition(other)

    return {
        "all_partitions": _three(hudi, lambda table: table.getAllPartitionPaths(), between),
        "files_in_partition": _three(hudi, lambda table: table.getAllFilesInPartition(place), between),
    }


def verbs(hudi: RealHudi, requested: dict[str, Any]) -> dict[str, Any]:
    """Each verb over one partition; `open` is not there: a view opens a metadata table of its own."""
    names = sorted(hudi.table().getAllPartitionPaths())
    name = names[len(names) // 2]
    found: dict[str, Any] = {}
    for verb in VERBS:
        turns = _Turns(hudi)
        for _ in range(WARM_UP + TURNS):
            view = turns.take("cold", lambda verb=verb: _asked_view(hudi, verb, name))  # type: ignore[misc]
            turns.take("cached", lambda view=view, verb=verb: hudi.listed(getattr(view, verb)(name)))  # type: ignore[misc]
            view.close()
        found[verb] = turns.figures()
    return found


def _asked_view(hudi: RealHudi, verb: str, partition: str) -> Any:
    view = hudi.view()
    hudi.listed(getattr(view, verb)(partition))
    return view


def keys(hudi: RealHudi, requested: dict[str, Any]) -> dict[str, Any]:
    """Record keys singly and batched."""
    entries = requested["entries"]
    sample = some_record_keys(entries, min(BATCHES[-1], entries // 10))
    table = hudi.table()
    single = _Turns(hudi)
    for key in sample[: SINGLES + WARM_UP]:
        text = hudi.texts([key])
        single.take("open", lambda text=text: table.readRecordIndex(text))  # type: ignore[misc]
    found: dict[str, Any] = {"single_us": single.figures(1 / 1000, cpu=statistics.median), "batched_us_per_key": {}}
    for count in (number for number in BATCHES if number <= len(sample)):
        batch = hudi.texts(sample[:count])
        _same(table.readRecordIndex(batch).size(), count)
        taken = _three(hudi, methodcaller("readRecordIndex", batch), lambda table: None, count / 1000, FEW_TURNS)
        found["batched_us_per_key"][str(count)] = taken
    return found


def ranges(hudi: RealHudi, requested: dict[str, Any]) -> dict[str, Any]:
    """The statistics of one column of 10 and of 5,000 files, by name."""
    column, names = column_names()[0], hudi.table().getAllPartitionPaths()
    pair = hudi.jvm.org.apache.hudi.common.util.collection.Pair
    every = hudi.jvm.java.util.ArrayList()
    for name in sorted(names):
        for info in hudi.table().getAllFilesInPartition(hudi.path(name)):
            every.add(pair.of(name, info.getPath().getName()))
        if every.size() >= requested["wide"]:
            break
    found = {}
    for count in (10, min(requested["wide"], every.size())):
        some = every.subList(0, count)
        _same(hudi.table().getColumnStats(some, column).size(), count)
        found[f"{count}_rows_ms"] = _three(
            hudi, partial(_statistics, some, column), lambda table: table.getAllPartitionPaths()
        )
    return found


def _statistics(files: Any, column: str, table: Any) -> Any:
    return table.getColumnStats(files, column)


WORK = {"listing": listing, "verbs": verbs, "keys": keys, "ranges": ranges}


def main(work: str, folder: str, requested: dict[str, Any]) -> None:
    """Answers one question in a JVM of its own."""
    hudi = RealHudi(Path(folder))
    try:
        answer = WORK[work](hudi, requested)
        print(json.dumps({**answer, "peak_mib": hudi.peak_mib()}))
    finally:
        hudi.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
