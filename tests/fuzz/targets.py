"""The codecs that are fuzzed: each target decodes a whole input as a reader of a table would."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pyarrow.orc as orc

from hudi_core.codec.avro.arrow import arrow_schema, decode_records
from hudi_core.codec.avro.container import read_container
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.bloom import DYNAMIC, SIMPLE, BloomFilter
from hudi_core.codec.hfile.block import cell_bounds
from hudi_core.codec.hfile.cells import decode_cells
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, CorruptBlock, LogBlock, walk
from hudi_core.codec.log.content import avro_block_records, decode_delete_block
from hudi_core.codec.log.delete_columns import delete_columns
from hudi_core.codec.orc import read_tail, writer_zones
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.config.properties import parse_properties
from hudi_core.config.table_config import PROPERTIES, TableConfig
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.history.log_archive import LogArchive
from hudi_core.history.lsm import LsmHistory
from hudi_core.metadata_table.indexed_table import parse_index_definitions
from hudi_core.metadata_table.record import MetadataCodec
from hudi_core.model.names import parse_base_file, parse_data_file, parse_log_file
from hudi_core.model.partition import check_file_name, check_partition, check_relative_path
from hudi_core.timeline.actions.clean import decode_clean_plan, decode_last_clean
from hudi_core.timeline.actions.commit import decode_commit
from hudi_core.timeline.actions.compaction import decode_compaction_plan
from hudi_core.timeline.actions.content import decode_any
from hudi_core.timeline.actions.replacecommit import decode_clustering_plan
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.schemas import parse_schema_history
from tests.fuzz import parquet_files, seeds
from tests.fuzz.structured import as_hfile, block_seeds, cell_seeds, contained, framed, mutated_json, payload_seeds
from tests.fuzz.target import Target
from tests.support.bloom_filters import might_contain
from tests.support.hfiles import lookup, meta_block
from tests.support.memory_storage import MemoryStorage

PATH = "fuzzed.bin"
"""What every error must name."""


def run_log(data: bytes) -> None:
    for block in walk(lambda offset, length: data[offset : offset + length], len(data), PATH):
        if not isinstance(block, CorruptBlock):
            run_block(block, data[block.content_offset : block.content_offset + block.content_length])


def run_block(block: LogBlock, content: bytes) -> None:
    if block.type is BlockType.DELETE:
        decode_delete_block(content, path=PATH)
        delete_columns(content, path=PATH)
    elif block.type is BlockType.HFILE_DATA:
        run_hfile(content)
    elif block.type is BlockType.PARQUET_DATA:
        run_parquet(content)
    elif block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA) and block.schema is not None:
        schema = parse_schema(block.schema, path=PATH)
        count, records = avro_block_records(content, path=PATH)
        decode_records(records, count, schema, arrow_schema(schema, path=PATH), path=PATH)


def run_hfile(data: bytes) -> None:
    reader = HFileReader.of_bytes(data, PATH)
    keys = [key for key, _ in reader.items()]
    reader.schema()
    meta_block(data, "bloomFilter")
    for key in [*keys[:3], b"key-0007", b""]:
        lookup(reader, key)
    list(reader.lookup_many(sorted({*keys[::7], b"key-0050~"})))


def run_parquet(data: bytes) -> None:
    with ParquetBaseFile(io.BytesIO(data), PATH) as file:
        assert file.footer is not None
        for batch in file.batches():
            batch.validate(full=True)


def run_commit(data: bytes) -> None:
    decode_commit(data, path=PATH)
    decode_any(data, path=PATH)


def run_container(data: bytes) -> None:
    read_container(data, path=PATH)
    decode_any(data, path=PATH)


def run_payload(data: bytes) -> None:
    container = contained(data)
    decode_any(container, path=PATH)
    refused: list[FormatError] = []
    decoders = (decode_commit, decode_clustering_plan, decode_compaction_plan)
    for decode in decoders:
        try:
            decode(container, path=PATH)
        except FormatError as error:
            refused.append(error)
    if len(refused) == len(decoders):
        raise refused[0]


def run_cells(data: bytes) -> None:
    """The vectorised decoder and the loop agree on what the cells are, and on what are none."""
    try:
        cells = [
            (data[row:row_end], data[value:value_end])
            for row, row_end, value, value_end in cell_bounds(data, PATH, with_mvcc=True)
        ]
    except CorruptFileError:
        decode_cells(data, PATH, with_mvcc=True)
        raise AssertionError("the vectorised decoder takes what the loop refuses") from None
    assert list(decode_cells(data, PATH, with_mvcc=True).items()) == cells
    reader = HFileReader.of_bytes(as_hfile(data), PATH)
    lookup(reader, b"key-0007")
    list(reader.items())


def run_compaction_plan(data: bytes) -> None:
    for layout in (1, 2):
        decode_compaction_plan(data, path=PATH, layout=layout)


def run_clean_plan(data: bytes) -> None:
    """What comes through may be deleted, so it lies in the table, and the general way to read the file gives the same
    names.
    """
    plan = decode_clean_plan(data, path=PATH)
    for partition, names in plan.files.items():
        check_partition(partition, source=PATH)
        assert all(parse_data_file(check_file_name(name, source=PATH)) is not None for name in names)
    assert all(check_partition(partition, source=PATH) for partition in plan.dropped_partitions)
    raw = decode_any(data, path=PATH)
    listed = (
        raw.get("filePathsToBeDeletedPerPartition" if raw.get("version") == 2 else "filesToBeDeletedPerPartition") or {}
    )
    assert {partition: len(items) for partition, items in listed.items()} == {
        partition: len(names) for partition, names in plan.files.items()
    }


def run_clean_metadata(data: bytes) -> None:
    decode_last_clean(data, "20260101000000000", path=PATH)


def run_properties(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(PROPERTIES, data)
    assert all(isinstance(value, str) for value in parse_properties(data, path=PATH).values())
    TableConfig.parse(data, path=PATH)


def run_log_archive(data: bytes) -> None:
    storage = MemoryStorage(clock=lambda: 0.0)
    storage.write(f"archived/.commits_.archive.1_{PATH}", b"")
    storage.write("archived/.commits_.archive.1_1-0-1", data)
    archive = LogArchive(storage, "archived")
    for instant in archive.instants():
        archive.completion_time(instant.requested_time)
        archive.content(instant)
        archive.plan(instant)
        archive.commit(instant.requested_time)


@cache
def history_files() -> tuple[tuple[str, bytes], ...]:
    prefix = ".hoodie/timeline/"
    found = seeds.members("9", "archived_timeline_cow")
    return tuple(
        (path.removeprefix(prefix), data)
        for path, data in sorted(found.items())
        if path.startswith(f"{prefix}history/")
    )


def run_history(damaged: Callable[[str], bool]) -> Callable[[bytes], None]:
    """The whole archive of layout 2, with `data` in place of the damaged files."""

    def run(data: bytes) -> None:
        storage = MemoryStorage(clock=lambda: 0.0)
        for path, content in history_files():
            storage.write(path, data if damaged(path) else content)
        history = LsmHistory(storage, "history")
        for instant in history.instants()[:8]:
            history.content(instant)
            history.plan(instant)
            history.commit(instant.requested_time)
            history.completion_time(instant.requested_time)
        list(history.completed_in("2026", None))

    return run


def is_manifest(path: str) -> bool:
    return path.startswith(("history/manifest", "history/_version"))


def is_instants(path: str) -> bool:
    return path.endswith(".parquet")


def history_seeds(requested: Callable[[str], bool]) -> Callable[[], list[bytes]]:
    return lambda: [data for path, data in history_files() if requested(path)]


def archive_seeds() -> list[bytes]:
    """Single blocks of archives: a whole file takes too long."""
    blocks = []
    for version, case in (("6", "archived_timeline_cow"), ("6", "archived_timeline_mor")):
        for data in seeds.of_paths(version, case, lambda path: "/archived/" in path):
            found = list(walk(lambda offset, length, data=data: data[offset : offset + length], len(data), PATH))  # type: ignore[misc]
            blocks += [data[block.offset : block.offset + block.length] for block in found]
    return sorted(blocks, key=len)[:4]


def name_seeds() -> list[bytes]:
    """Every name of some tables, one to a line."""
    tables = [
        seeds.members(*case)
        for case in (("6", "mor_compacted"), ("9", "mor_compacted"), ("6", "multilevel_encoded"), ("9", "cdc_mor"))
    ]
    return [*(path.encode() for table in tables for path in table), *("\n".join(table).encode() for table in tables)]


def run_names(data: bytes) -> None:
    """Every parser of names on every line: the parts of a name must never lead anywhere else."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")[:200]
    for line in lines:
        name = line.rsplit("/", 1)[-1]
        for parse in (parse_base_file, parse_log_file):
            try:
                parsed = parse(name)
            except FormatError:
                continue
            assert "/" not in parsed.file_id
            assert parsed.instant == "" or parsed.instant.isascii()
            assert parsed.instant == "" or parsed.instant.isdigit()
        parse_data_file(name)
        for check in (check_relative_path, check_partition, check_file_name):
            try:
                checked = check(line, source=PATH)
            except FormatError:
                continue
            assert ".." not in checked.split("/")
            assert not checked.startswith("/")
    for layout in (1, 2):
        timeline_of([line.rsplit("/", 1)[-1] for line in lines], layout)


@cache
def metadata_schema() -> str:
    (data, *_) = (data for path, data in seeds.members("9", "mdt_all_cow").items() if path.endswith(".hfile"))
    text = HFileReader.of_bytes(data, PATH).schema()
    assert text is not None
    return text


def metadata_seeds() -> list[bytes]:
    found: set[bytes] = set()
    for path, data in seeds.members("9", "mdt_all_cow").items():
        if path.endswith(".hfile"):
            found.update([value for _, value in HFileReader.of_bytes(data, PATH).items()][:6])
    return sorted(found)


def run_metadata_record(data: bytes) -> None:
    MetadataCodec(metadata_schema(), path=PATH).decode(b"key", data)


def bloom_seeds() -> list[bytes]:
    """A filter of one row, and one that has grown by rows."""
    keys = pa.array([b"key-%04d" % index for index in range(150)])
    found = []
    for most in (60, 180):
        bloom = BloomFilter(entries=60, error_rate=0.01, max_entries=most)
        bloom.add_batch(keys)
        text = bloom.to_base64().encode()
        found += [text, base64.b64decode(text)]
    return found


def run_bloom(data: bytes) -> None:
    """The input as the text of a footer, and as what the text stands for: most changes of the text are no base64 any
    more.
    """
    refused: CorruptFileError | None = None
    for text in (data, base64.b64encode(data)):
        for kind in (DYNAMIC, SIMPLE):
            try:
                might_contain(BloomFilter.parse(text, kind, path=PATH), b"key-0001")
            except CorruptFileError as error:
                refused = error
            else:
                return
    assert refused is not None
    raise refused


def avro_schema_seeds() -> list[bytes]:
    """Schemas of commits and of log blocks."""
    texts = set()
    for data in seeds.log_files():
        for block in walk(lambda offset, length, data=data: data[offset : offset + length], len(data), PATH):  # type: ignore[misc]
            if isinstance(block, LogBlock) and block.schema is not None:
                texts.add(block.schema.encode())
    return sorted(texts, key=len)[:12]


def json_seeds() -> list[bytes]:
    """Commit metadata of layout 1."""
    return [data for data in seeds.timeline_files("commit", ".inflight") if data.startswith(b"{")]


def index_seeds() -> list[bytes]:
    """Index definitions of tables with every index."""
    cases = {"8": ("mdt_all_cow", "mdt_all_mor"), "9": ("mdt_all_cow", "mdt_all_mor")}
    return seeds.picked(cases, lambda path: path.endswith(".index_defs/index.json"))


def schema_history_seeds() -> list[bytes]:
    """A history of two schemas as SerDeHelper writes it, and its later schema as commit metadata holds it."""
    array = {"type": "array", "element_id": 10, "element": "long", "element_optional": True}
    inner = {"type": "record", "fields": [{"id": 9, "name": "x", "optional": True, "type": "double"}]}
    mapping = {"type": "map", "key_id": 11, "key": "string", "value_id": 12, "value": "string", "value_optional": False}
    fields = [
        {"id": number, "name": f"column-{number}", "optional": number > 0, "type": kind}
        for number, kind in enumerate(
            ("string", "long", "decimal(12,2)", "fixed[16]", inner, array, mapping, "timestamp")
        )
    ]
    later = {"max_column_id": 20, "version_id": 20261120223344123, "type": "record", "fields": fields}
    first = {"max_column_id": 20, "version_id": 0, "type": "record", "fields": fields[:5]}
    return [json.dumps({"schemas": [later, first]}).encode(), json.dumps(later).encode()]


def run_schema_history(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    parse_schema_history(text if "schemas" in text else f'{{"schemas": [{text}]}}', path=PATH)


def run_index_definitions(data: bytes) -> None:
    parse_index_definitions(data, path=PATH)


def orc_seeds() -> list[bytes]:
    """Small ORC files, uncompressed and not."""
    rows = pa.table({"ts": pa.array([0, 1, None], pa.timestamp("us")), "name": ["a", None, "b" * 50]})
    found = []
    for codec in ("uncompressed", "zlib"):
        sink = io.BytesIO()
        orc.write_table(rows, sink, compression=codec)
        found.append(sink.getvalue())
    return found


def run_orc_zones(data: bytes) -> None:
    assert all(
        isinstance(zone, str) for zone in writer_zones(io.BytesIO(data), PATH, read_tail(io.BytesIO(data), PATH))
    )


def run_avro_schema(data: bytes) -> None:
    schema = parse_schema(data.decode("utf-8", "replace"), path=PATH)
    try:
        found = arrow_schema(schema, path=PATH)
    except UnsupportedError:
        return
    assert isinstance(found, pa.Schema)


CODECS: dict[str, Target] = {
    "log": Target(seeds.log_files, run_log),
    "hfile": Target(seeds.hfiles, run_hfile),
    "avro_container": Target(
        lambda: seeds.timeline_files(".requested", ".clean", ".rollback", ".savepoint", ".restore"), run_container
    ),
    "avro_payload": Target(payload_seeds, run_payload),
    "log_content": Target(block_seeds, lambda data: run_log(framed(data))),
    "hfile_cells": Target(cell_seeds, run_cells),
    "commit_json": Target(json_seeds, run_commit, mutate=mutated_json),
    "commit_metadata": Target(
        lambda: seeds.timeline_files(".commit", ".deltacommit", ".replacecommit", ".inflight"), run_commit
    ),
    "compaction_plan": Target(lambda: seeds.timeline_files(".compaction.requested"), run_compaction_plan),
    "clean_plan": Target(lambda: seeds.timeline_files(".clean.requested"), run_clean_plan),
    "clean_metadata": Target(lambda: seeds.timeline_files(".clean"), run_clean_metadata),
    "avro_schema": Target(avro_schema_seeds, run_avro_schema, mutate=mutated_json),
    "properties": Target(lambda: seeds.timeline_files("hoodie.properties"), run_properties),
    "names": Target(name_seeds, run_names),
    "history_log": Target(archive_seeds, run_log_archive),
    "history_manifest": Target(history_seeds(is_manifest), run_history(is_manifest)),
    "history_manifest_json": Target(
        history_seeds(lambda path: "manifest" in path), run_history(is_manifest), 0.5, mutated_json
    ),
    "history_parquet": Target(history_seeds(is_instants), run_history(is_instants), share=0.25),
    "schema_history": Target(schema_history_seeds, run_schema_history, mutate=mutated_json),
    "index_definitions": Target(index_seeds, run_index_definitions, mutate=mutated_json),
    "orc_zones": Target(orc_seeds, run_orc_zones),
    "metadata_record": Target(metadata_seeds, run_metadata_record),
    "bloom_filter": Target(bloom_seeds, run_bloom),
    "parquet_footer": Target(parquet_files.footers, parquet_files.run_footer),
    "parquet_pages": Target(parquet_files.files, parquet_files.run_copies, spare_mib=parquet_files.RESERVED_MIB),
}
