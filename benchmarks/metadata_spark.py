"""Real Hudi 0.15.0 answers from a metadata table that we made: `python -m benchmarks.metadata_spark WORK FOLDER JSON`. Prints a line of JSON.

Its own Java classes are called through Spark's gateway, without a Spark job, and what they return stays in the JVM; a call of the gateway takes
0.3 ms or so, which the times hold. The words cold, open and cached are those of benchmarks.metadata_process; the first turns, in which Java
compiles, are not counted.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.metadata_process import BATCHES, SINGLES, TURNS, VERBS
from benchmarks.metadata_tables import column_names, some_record_keys
from benchmarks.tables import hudi_session

WARM_UP = 5


class RealHudi:
    """What opens a table's metadata table in the JVM."""

    def __init__(self, folder: Path) -> None:
        self._session = hudi_session(2)
        self.jvm: Any = self._session._jvm
        hudi = self.jvm.org.apache.hudi
        self._base = str(folder)
        self._conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self._session._jsc.hadoopConfiguration())
        self._storage = hudi.storage.HoodieStorageUtils.getStorage(self._base, self._conf)
        self._context = hudi.common.engine.HoodieLocalEngineContext(self._conf)
        self._config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()

    def table(self) -> Any:
        """HoodieBackedTableMetadata that keeps its readers open, as a long-lived reader's does."""
        return self.jvm.org.apache.hudi.metadata.HoodieBackedTableMetadata(self._context, self._storage, self._config, self._base, True)

    def view(self) -> Any:
        """A file-system view over a new meta client."""
        client = self.jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(self._conf).setBasePath(self._base).build()
        manager = self.jvm.org.apache.hudi.common.table.view.FileSystemViewManager
        return manager.createInMemoryFileSystemView(self._context, client, self._config)

    def path(self, partition: str) -> Any:
        """A partition's folder."""
        return self.jvm.org.apache.hudi.storage.StoragePath(self._base, partition)

    def texts(self, items: list[str]) -> Any:
        """A java.util.List of texts without line breaks, by one call."""
        array = self.jvm.java.util.regex.Pattern.compile("\n").split("\n".join(items))
        return self.jvm.java.util.Arrays.asList(array)

    def listed(self, stream: Any) -> int:
        """How many a stream of the JVM gives, each of them made."""
        return int(stream.collect(self.jvm.java.util.stream.Collectors.toList()).size())

    def close(self) -> None:
        """Ends the JVM."""
        self._session.stop()


def _ms(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def _three(hudi: RealHudi, ask: Callable[[Any], Any], between: Callable[[Any], Any]) -> dict[str, float]:
    taken: list[tuple[float, float, float]] = []
    for _ in range(WARM_UP + TURNS):
        begun = time.perf_counter()
        table = hudi.table()
        ask(table)
        cold = (time.perf_counter() - begun) * 1000
        between(table)
        taken.append((cold, _ms(lambda table=table: ask(table)), _ms(lambda table=table: ask(table))))  # type: ignore[misc]
        table.close()
    middle = [round(statistics.median(times), 3) for times in zip(*taken[WARM_UP:], strict=True)]
    return dict(zip(("cold", "open", "cached"), middle, strict=True))


def _same(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"real Hudi gives {found}, not {wanted}")


def listing(hudi: RealHudi, asked: dict[str, Any]) -> dict[str, Any]:
    """All partitions, and the files of one, as benchmarks.metadata_process asks."""
    names = sorted(hudi.table().getAllPartitionPaths())
    _same(len(names), asked["partitions"])
    place, others = hudi.path(names[len(names) // 2]), [hudi.path(names[0]), hudi.path(names[-1])]
    _same(hudi.table().getAllFilesInPartition(place).size(), asked["files_of_the_partition"])

    def between(table: Any) -> None:
        for other in others:
            table.getAllFilesInPartition(other)

    return {
        "all_partitions": _three(hudi, lambda table: table.getAllPartitionPaths(), between),
        "files_in_partition": _three(hudi, lambda table: table.getAllFilesInPartition(place), between),
    }


def verbs(hudi: RealHudi, asked: dict[str, Any]) -> dict[str, Any]:
    """Each verb over one partition; `open` is not there: a view opens a metadata table of its own."""
    names = sorted(hudi.table().getAllPartitionPaths())
    name = names[len(names) // 2]
    found: dict[str, Any] = {}
    for verb in VERBS:
        cold, cached = [], []
        for _ in range(WARM_UP + TURNS):
            begun = time.perf_counter()
            view = hudi.view()
            hudi.listed(getattr(view, verb)(name))
            cold.append((time.perf_counter() - begun) * 1000)
            cached.append(_ms(lambda view=view, verb=verb: hudi.listed(getattr(view, verb)(name))))  # type: ignore[misc]
            view.close()
        found[verb] = {key: round(statistics.median(times[WARM_UP:]), 3) for key, times in (("cold", cold), ("cached", cached))}
    return found


def keys(hudi: RealHudi, asked: dict[str, Any]) -> dict[str, Any]:
    """Record keys singly and batched."""
    entries = asked["entries"]
    sample = some_record_keys(entries, min(BATCHES[-1], entries // 10))
    table = hudi.table()
    singles = [hudi.texts([key]) for key in sample[: SINGLES + WARM_UP]]
    one = [_ms(lambda key=key: table.readRecordIndex(key)) for key in singles][WARM_UP:]  # type: ignore[misc]
    found: dict[str, Any] = {"single_us": {"open": round(statistics.median(one) * 1000)}, "batched_us_per_key": {}}
    for count in (number for number in BATCHES if number <= len(sample)):
        batch = hudi.texts(sample[:count])
        _same(table.readRecordIndex(batch).size(), count)
        taken = _three(hudi, lambda table, batch=batch: table.readRecordIndex(batch), lambda table: None)  # type: ignore[misc]
        found["batched_us_per_key"][str(count)] = {name: round(taken[name] * 1000 / count, 2) for name in ("cold", "open")}
    return found


def ranges(hudi: RealHudi, asked: dict[str, Any]) -> dict[str, Any]:
    """The statistics of one column of 10 and of 5,000 files, by name."""
    column, names = column_names()[0], hudi.table().getAllPartitionPaths()
    pair = hudi.jvm.org.apache.hudi.common.util.collection.Pair
    every = hudi.jvm.java.util.ArrayList()
    for name in sorted(names):
        for info in hudi.table().getAllFilesInPartition(hudi.path(name)):
            every.add(pair.of(name, info.getPath().getName()))
        if every.size() >= asked["wide"]:
            break
    found = {}
    for count in (10, min(asked["wide"], every.size())):
        some = every.subList(0, count)
        _same(hudi.table().getColumnStats(some, column).size(), count)
        found[f"{count}_rows_ms"] = _three(
            hudi, lambda table, some=some: table.getColumnStats(some, column), lambda table: table.getAllPartitionPaths()
        )  # type: ignore[misc]
    return found


WORK = {"listing": listing, "verbs": verbs, "keys": keys, "ranges": ranges}


def main(work: str, folder: str, asked: dict[str, Any]) -> None:
    """Answers one question in a JVM of its own."""
    hudi = RealHudi(Path(folder))
    try:
        print(json.dumps(WORK[work](hudi, asked)))
    finally:
        hudi.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
