"""Makes `data/mislabelled_tables.tar.xz` with real Apache Hudi 1.2.0: merge-on-read tables of versions 6, 8 and 9 whose
older files label milliseconds `timestamp-micros`, and local timestamps `long`.

    python -m tests.golden.make_mislabelled_tables FOLDER, then:
    tar cJf tests/golden/data/mislabelled_tables.tar.xz -C FOLDER .

A bulk_insert and an upsert write the numbers under the wrong labels, as a writer before 1.1 did behind an evolution of
its schema. An upsert of Avro records by the write client, as HoodieStreamer has them, brings the right ones.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.interop.bundle import bundle_jar
from tests.interop.worker import Worker

VERSION = "1.2.0"
FIRST = 1718000000123
FRAME = "id string, part string, ts long, e timestamp, l long, n struct<e: timestamp, x: int>, a array<timestamp>, \
m map<string, timestamp>"
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


SCHEMA = {
    "type": "record",
    "name": "row",
    "namespace": "labels",
    "fields": [
        optional("id", "string"),
        optional("part", "string"),
        optional("ts", "long"),
        optional("e", MILLIS),
        optional("l", {"type": "long", "logicalType": "local-timestamp-millis"}),
        optional("n", {"type": "record", "name": "n", "fields": [optional("e", MILLIS), optional("x", "int")]}),
        optional("a", {"type": "array", "items": ["null", MILLIS]}),
        optional("m", {"type": "map", "values": ["null", MILLIS]}),
    ],
}


def make(worker: Worker, base: str, version: int) -> None:
    pinned = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
    common = {
        **(pinned if version < 9 else {}),
        "hoodie.table.name": "labels",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.embed.timeline.server": "false",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    keys = [("p", f"k{number}", number) for number in range(4)] + [("q", "q0", 100), ("q", "q1", 101)]
    for operation, rows, mode in (
        ("bulk_insert", keys, "overwrite"),
        ("upsert", [("p", "k0", 1000)], "append"),
    ):
        frame = worker.spark.createDataFrame([as_row(*row) for row in rows], FRAME).coalesce(1)
        options = {**common, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options).mode(mode).save(base)
    client = worker._client(base, {**common, "hoodie.avro.schema": json.dumps(SCHEMA)})
    records = worker.jvm.java.util.ArrayList()
    records.add(as_record(worker.jvm, "p", "k1", 5000))
    instant = client.startCommit()
    written = client.upsert(worker.spark._jsc.parallelize(records, 1), instant)
    client.commit(instant, worker.spark._jsc.parallelize(written.collect(), 1))
    client.close()


def as_row(partition: str, key: str, later: int) -> tuple[Any, ...]:
    number = FIRST + later
    wrong = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=number)
    return key, partition, 1, wrong, number, (wrong, later), [wrong, None], {"k": wrong}


def as_record(jvm: Any, partition: str, key: str, later: int) -> Any:
    number = {"long": FIRST + later}
    text = {
        "id": {"string": key},
        "part": {"string": partition},
        "ts": {"long": 3},
        "e": number,
        "l": number,
        "n": {"labels.n": {"e": number, "x": {"int": later}}},
        "a": {"array": [number, None]},
        "m": {"map": {"k": number}},
    }
    avro, model = jvm.org.apache.avro, jvm.org.apache.hudi.common.model
    schema = avro.Schema.Parser().parse(json.dumps(SCHEMA))
    decoder = avro.io.DecoderFactory.get().jsonDecoder(schema, json.dumps(text))
    record = avro.generic.GenericDatumReader(schema).read(None, decoder)
    payload = model.OverwriteWithLatestAvroPayload(jvm.org.apache.hudi.common.util.Option.of(record))
    return model.HoodieAvroRecord(model.HoodieKey(key, partition), payload)


def main(folder: Path) -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    worker = Worker(str(bundle_jar(VERSION)), VERSION)
    for version in (6, 8, 9):
        make(worker, str(folder / f"millis_as_micros_mor_v{version}"), version)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
