"""Schemas that contain themselves, expand, nest or allocate without bound, wherever a writer's schema is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.container import assemble, read_container, write_container
from hudi_core.codec.avro.datum import codec_of
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock, encode_block
from tests.hostile.log_blocks import blocks_of
from tests.hostile.refusals import LOCAL, HostileTable
from tests.hostile.schemas import HOSTILE
from tests.support.tiers import tiered

Hostile = Callable[[str, str], HostileTable]


def in_container(data: bytes, schema: str) -> bytes:
    """The records of a container behind another schema."""
    written, records = read_container(data, path="seed")
    body = b"".join(codec_of(written).encode(record) for record in records)
    return assemble(schema.encode(), len(records), body)


def in_blocks(data: bytes, schema: str) -> bytes:
    """A log file whose blocks say another schema, HFiles within them as well."""
    return b"".join(_with_schema(data, block, schema) for block in blocks_of(data))


def _with_schema(data: bytes, block: LogBlock, schema: str) -> bytes:
    content = data[block.content_offset : block.content_offset + block.content_length]
    if block.type is BlockType.HFILE_DATA:
        content = in_hfile(content, schema)
    return encode_block(block.type, {**block.headers, HeaderKey.SCHEMA: schema}, content, hudi_1_headers=True)


def in_hfile(data: bytes, schema: str) -> bytes:
    """The cells of an HFile under another schema."""
    return write_hfile(list(HFileReader.of_bytes(data, "seed").items()), schema=schema)


@dataclass(frozen=True)
class Place:
    """Where a schema comes in, and the command that reads it."""

    table: tuple[str, str]
    pattern: str
    change: Callable[[bytes, str], bytes]
    verb: str
    arguments: tuple[str, ...] = ()


def in_json_commit(data: bytes, schema: str) -> bytes:
    """A commit of layout 1 that says another schema of the table."""
    document = json.loads(data)
    document["extraMetadata"]["schema"] = schema
    return json.dumps(document).encode()


def in_avro_commit(data: bytes, schema: str) -> bytes:
    """As in_json_commit, of layout 2."""
    written, (commit,) = read_container(data, path="seed")
    return write_container(written, [{**commit, "extraMetadata": {**commit["extraMetadata"], "schema": schema}}])


def in_properties(data: bytes, schema: str) -> bytes:
    """`hoodie.table.create.schema`, escaped as Java does it."""
    lines = [line for line in data.decode().splitlines() if not line.startswith("hoodie.table.create.schema=")]
    shown = schema.replace("\\", "\\\\").replace(":", "\\:")
    return "\n".join([*lines, f"hoodie.table.create.schema={shown}", ""]).encode()


def in_history(data: bytes, schema: str) -> bytes:
    """A file of the archive of layout 2 whose commits are containers of another schema."""
    rows = pq.read_table(pa.BufferReader(data), use_threads=False)
    commits = [in_container(commit, schema) for commit in rows.column("metadata").to_pylist()]
    at = rows.schema.get_field_index("metadata")
    sink = pa.BufferOutputStream()
    pq.write_table(rows.set_column(at, "metadata", pa.array(commits, pa.binary())), sink)
    return sink.getvalue().to_pybytes()


PLACES = {
    "plan": Place(
        ("9", "mor_compaction_requested"),
        ".hoodie/timeline/*.compaction.requested",
        in_container,
        "run compaction",
        LOCAL,
    ),
    "clean plan": Place(("6", "clean_requested_mor"), ".hoodie/*.clean.requested", in_container, "run clean", LOCAL),
    "commit": Place(("8", "cow_basic"), ".hoodie/timeline/*_*.commit", in_container, "read"),
    "log of the data": Place(("6", "mor_basic"), "*/.*.log.*", in_blocks, "read", ("--metadata", "off")),
    "log of the metadata table": Place(
        ("8", "mdt_record_index_lookup"), ".hoodie/metadata/files/.*.log.*", in_blocks, "read", ("--metadata", "on")
    ),
    "base file of the metadata table": Place(
        ("8", "mdt_record_index_lookup"), ".hoodie/metadata/files/*.hfile", in_hfile, "read", ("--metadata", "on")
    ),
    "archive of version 6": Place(
        ("6", "archived_timeline_mor"), ".hoodie/archived/.commits_.archive.*", in_blocks, "timeline", ("--archived",)
    ),
    "archive of version 9": Place(
        ("9", "archived_timeline_mor"),
        ".hoodie/timeline/history/*_0.parquet",
        in_history,
        "read",
        ("--query", "incremental", "--begin", "000"),
    ),
}
WHOLE = ("commit", "log of the data", "base file of the metadata table")
FEW = ("recursive through a union", "expanding", "no JSON")
"""`make test` brings all schemas to WHOLE, and FEW to the other places."""
OF_THE_TABLE = {
    "commit of version 6": Place(("6", "mor_basic"), ".hoodie/*.deltacommit", in_json_commit, "read"),
    "commit of version 8": Place(("8", "cow_basic"), ".hoodie/timeline/*_*.commit", in_avro_commit, "read"),
    "commit of version 9": Place(("9", "mor_basic"), ".hoodie/timeline/*_*.deltacommit", in_avro_commit, "read"),
    "properties": Place(("9", "empty_table_no_commits"), ".hoodie/hoodie.properties", in_properties, "read"),
}
"""Where the table's own schema comes from."""
LAWFUL = {"a hundred thousand fields", "empty"}
"""A table may have so many columns, and a commit or the properties none that count."""


@pytest.mark.parametrize(
    ("place", "schema"),
    tiered(
        [(place, schema) for place in sorted(PLACES) for schema in sorted(HOSTILE)],
        [(place, schema) for place in PLACES for schema in (HOSTILE if place in WHOLE else FEW)],
    ),
)
def test_no_schema_crashes_or_starves_a_run(hostile: Hostile, place: str, schema: str) -> None:
    where = PLACES[place]
    table = hostile(*where.table)
    expected = table.rows("--metadata", "off")
    newest = -1 if "metadata" in place or place == "commit" else 0
    path = table.change(where.pattern, lambda data: where.change(data, HOSTILE[schema]()), newest)
    if where.verb == "read":
        table.keeps_rows(expected, *where.arguments)
    else:
        error = table.refuses(where.verb, *where.arguments, names=path.name, codes=(2,))
        assert error["path"]
        table.keeps_rows(expected, "--metadata", "off")


@pytest.mark.parametrize("schema", sorted(HOSTILE.keys() - LAWFUL))
@pytest.mark.parametrize("place", sorted(OF_THE_TABLE))
def test_no_schema_of_the_table_crashes_or_starves_a_run(hostile: Hostile, place: str, schema: str) -> None:
    where = OF_THE_TABLE[place]
    table = hostile(*where.table)
    path = table.change(where.pattern, lambda data: where.change(data, HOSTILE[schema]()), -1)
    table.refuses_read(names=path.name, codes=(2,))


@pytest.mark.parametrize("schema", [name for name in sorted(HOSTILE) if name.startswith(("recursive", "expanding"))])
@pytest.mark.parametrize("place", ["log of the data", "log of the metadata table"])
def test_the_file_is_named(hostile: Hostile, place: str, schema: str) -> None:
    where = PLACES[place]
    table = hostile(*where.table)
    path = table.change(where.pattern, lambda data: where.change(data, HOSTILE[schema]()), -1)
    table.refuses_read(*where.arguments, names=path.name)
