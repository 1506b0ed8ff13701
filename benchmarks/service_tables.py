"""Makes the tables of the services' benchmark, with names and commits as Hudi 0.15.0 writes them.

They are of version 6, copy on write, without a metadata table; add_logs and to_version_9 change that. Planning,
cleaning and archival read names, sizes and commits and open no data file, so such files hold a few bytes, unless
single_slices is given what they hold.
`python -m benchmarks.service_tables clean FILES PARTITIONS FOLDER` and `archive INSTANTS FOLDER`.
"""

from __future__ import annotations

import json
import sys
import uuid
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hudi_core.timeline.actions.commit import decode_commit, encode_commit_avro

NAME = "bench"
SLICES = 4
"""Of each file group in the table to be cleaned: one commit each."""
ARCHIVE_PARTITIONS = 10
LIVE_COMMITS = 40
"""Commits whose base files are there in the table to be archived; those before were cleaned."""
_CONTENT = b"PAR1PAR1"
_VERSION_9 = {
    "hoodie.table.version": "9",
    "hoodie.table.initial.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}
BaseFile = Callable[[str, str, int], tuple[bytes, int]]
"""A base file's content and how many records it has: of its partition, its name and its number in the partition."""
SCHEMA = {
    "type": "record",
    "name": "bench_record",
    "namespace": "hoodie.bench",
    "fields": [{"name": "id", "type": "string"}, {"name": "part", "type": "string"}, {"name": "ts", "type": "long"}],
}
_PROPERTIES = {
    "hoodie.table.name": NAME,
    "hoodie.database.name": "",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.checksum": str(zlib.crc32(f".{NAME}".encode())),
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "part",
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.populate.meta.fields": "true",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.table.cdc.enabled": "false",
}


def clean_table(files: int, partitions: int, folder: Path) -> None:
    """`files` base files in all, SLICES to a file group: every commit rewrote every file group."""
    _rewritten(files // partitions // SLICES, partitions, folder, SLICES)


def single_slices(groups: int, partitions: int, folder: Path, base_file: BaseFile | None = None) -> None:
    """`groups` file groups of one slice in all, by one commit."""
    _rewritten(groups // partitions, partitions, folder, 1, base_file)


def _rewritten(groups: int, partitions: int, folder: Path, commits: int, base_file: BaseFile | None = None) -> None:
    ids = {f"p{number:05d}": [f"{uuid.uuid4()}-0" for _ in range(groups)] for number in range(partitions)}
    fresh = _begin(folder, ids)
    previous = "null"
    for number in range(commits):
        instant = _instant(number)
        stats = {part: [_stat(part, group, instant, previous) for group in found] for part, found in ids.items()}
        if base_file is not None:
            for found in stats.values():
                _write(fresh, found, base_file)
        _commit(fresh, instant, stats, present=base_file is None)
        previous = instant
    fresh.rename(folder)


def archive_table(instants: int, folder: Path) -> None:
    """`instants` commits, each of which rewrote one file group; the base files of the last LIVE_COMMITS are there."""
    ids = {f"p{number:05d}": [f"{uuid.uuid4()}-0"] for number in range(ARCHIVE_PARTITIONS)}
    fresh = _begin(folder, ids)
    latest = dict.fromkeys(ids, "null")
    for number in range(instants):
        instant, part = _instant(number), f"p{number % ARCHIVE_PARTITIONS:05d}"
        _commit(
            fresh,
            instant,
            {part: [_stat(part, ids[part][0], instant, latest[part])]},
            present=number >= instants - LIVE_COMMITS,
        )
        latest[part] = instant
    fresh.rename(folder)


def _begin(folder: Path, partitions: dict[str, list[str]]) -> Path:
    fresh = folder.with_name(folder.name + ".tmp")
    (fresh / ".hoodie" / "archived").mkdir(parents=True)
    lines = [f"{key}={value}" for key, value in _PROPERTIES.items()]
    (fresh / ".hoodie" / "hoodie.properties").write_text("#made up for a benchmark\n" + "\n".join(lines) + "\n")
    for part in partitions:
        (fresh / part).mkdir()
        (fresh / part / ".hoodie_partition_metadata").write_text(
            f"#partition metadata\ncommitTime={_instant(0)}\npartitionDepth=1\n"
        )
    return fresh


def _instant(number: int) -> str:
    return (datetime(2026, 1, 1) + timedelta(seconds=30 * number)).strftime("%Y%m%d%H%M%S") + "000"


def _stat(part: str, group: str, instant: str, previous: str) -> dict[str, Any]:
    return {
        "fileId": group,
        "path": f"{part}/{group}_0-12-13_{instant}.parquet",
        "cdcStats": None,
        "prevCommit": previous,
        "numWrites": 48,
        "numDeletes": 0,
        "numUpdateWrites": 48,
        "numInserts": 0,
        "totalWriteBytes": len(_CONTENT),
        "totalWriteErrors": 0,
        "tempPath": None,
        "partitionPath": part,
        "fileSizeInBytes": len(_CONTENT),
        "minEventTime": None,
        "maxEventTime": None,
    }


def _write(table: Path, stats: list[dict[str, Any]], base_file: BaseFile) -> None:
    for number, stat in enumerate(stats):
        content, rows = base_file(stat["partitionPath"], Path(stat["path"]).name, number)
        (table / stat["path"]).write_bytes(content)
        stat |= {name: len(content) for name in ("totalWriteBytes", "fileSizeInBytes")}
        stat |= {"numWrites": rows, "numUpdateWrites": 0, "numInserts": rows}


def _commit(table: Path, instant: str, stats: dict[str, list[dict[str, Any]]], *, present: bool) -> None:
    document = {
        "partitionToWriteStats": stats,
        "compacted": False,
        "extraMetadata": {"schema": json.dumps(SCHEMA)},
        "operationType": "UPSERT",
    }
    timeline = table / ".hoodie"
    (timeline / f"{instant}.commit.requested").write_bytes(b"")
    (timeline / f"{instant}.inflight").write_bytes(b"")
    (timeline / f"{instant}.commit").write_text(json.dumps(document, indent=2))
    if present:
        for stat in (stat for found in stats.values() for stat in found):
            (table / stat["path"]).write_bytes(_CONTENT)


def add_logs(table: Path, version: str) -> None:
    """Makes a table of single slices one merge on read, each of whose slices gets one log file, named as in table
    `version`, by a second deltacommit.
    """
    timeline, (commit,) = table / ".hoodie", table.glob(".hoodie/*.commit")
    (timeline / f"{commit.stem}.inflight").rename(timeline / f"{commit.stem}.deltacommit.inflight")
    for path in (commit, timeline / f"{commit.name}.requested"):
        path.rename(path.with_name(path.name.replace(".commit", ".deltacommit")))
    _set_properties(table, {"hoodie.table.type": "MERGE_ON_READ"})
    instant, document = _instant(1), json.loads((timeline / f"{commit.stem}.deltacommit").read_text())
    named_after = commit.stem if version == "6" else instant
    for found in document["partitionToWriteStats"].values():
        for stat in found:
            base, log = Path(stat["path"]).name, f".{stat['fileId']}_{named_after}.log.1_0-12-13"
            stat |= {"path": f"{stat['partitionPath']}/{log}", "prevCommit": commit.stem}
            stat |= {"logVersion": 1, "logOffset": 0, "baseFile": base, "logFiles": [log]}
            (table / stat["path"]).write_bytes(_CONTENT)
    (timeline / f"{instant}.deltacommit.requested").write_bytes(b"")
    (timeline / f"{instant}.deltacommit.inflight").write_bytes(b"")
    (timeline / f"{instant}.deltacommit").write_text(json.dumps(document))


def to_version_9(table: Path) -> None:
    """Makes a table of version 6 one of version 9, with the same commits, each completed a second after its request."""
    hoodie = table / ".hoodie"
    _set_properties(table, _VERSION_9, gone="hoodie.table.precombine.field")
    (hoodie / "archived").rmdir()
    timeline = hoodie / "timeline"
    (timeline / "history").mkdir(parents=True)
    for path in [*hoodie.glob("*.requested"), *hoodie.glob("*.inflight")]:
        path.rename(timeline / path.name)
    for path in [*hoodie.glob("*.commit"), *hoodie.glob("*.deltacommit")]:
        metadata = decode_commit(path.read_bytes(), path=path.name)
        completed = timeline / f"{path.stem}_{int(path.stem) + 1000}{path.suffix}"
        completed.write_bytes(encode_commit_avro(metadata))
        path.unlink()


def _set_properties(table: Path, changes: Mapping[str, str], gone: str = "") -> None:
    path = table / ".hoodie" / "hoodie.properties"
    kept = [line for line in path.read_text().splitlines() if line.split("=")[0] not in {*changes, gone}]
    path.write_text("\n".join([*kept, *map("=".join, changes.items())]) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "clean":
        clean_table(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        archive_table(int(sys.argv[2]), Path(sys.argv[3]))
