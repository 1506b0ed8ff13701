"""The bytes that mutations start from: files of the golden tables, and small ones of our own where golden files are too
large.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from functools import cache

from hudi_core.codec.hfile.block import Codec
from hudi_core.codec.hfile.writer import write_hfile
from tests.support.golden_data import golden_root
from tests.support.hfiles import hfile
from tests.support.hudi_rs_data import hudi_rs_root

LARGEST = 192 << 10
"""Larger files are excluded: an input would take too long."""


@cache
def members(version: str, case: str) -> dict[str, bytes]:
    """Every file of a golden table by its path below the base path; no `.crc` side files."""
    with zipfile.ZipFile(golden_root() / version / f"{case}.zip") as zipped:
        entries = [entry for entry in zipped.infolist() if not entry.is_dir() and not entry.filename.endswith(".crc")]
        return {entry.filename.split("/", 1)[1]: zipped.read(entry) for entry in entries}


def picked(cases: Mapping[str, tuple[str, ...]], requested: Callable[[str], bool], most: int = 3) -> list[bytes]:
    """Of each case (table version to names), up to `most` different files whose path is wanted, the smallest first."""
    found = []
    for version, names in cases.items():
        for name in names:
            fitting = {
                data for path, data in members(version, name).items() if requested(path) and 0 < len(data) <= LARGEST
            }
            found += sorted(fitting, key=lambda data: (len(data), data))[:most]
    return found


def log_files() -> list[bytes]:
    """Log files of every block kind and of all versions, with deletes, rollbacks, positions and partial updates."""
    cases = {
        "6": (
            "mor_basic",
            "mor_parquet_log",
            "mor_hfile_log",
            "rolled_back_mor",
            "types_mor",
            "cdc_mor",
            "log_corrupt_middle",
        ),
        "8": ("mor_basic", "mor_hfile_log", "partial_update_merge_into", "cdc_mor"),
        "9": ("mor_basic", "partial_update_merge_into", "log_compaction_requested", "cdc_mor"),
    }
    found = picked(cases, lambda path: ".log." in path and not path.startswith(".hoodie"))
    return found + [path.read_bytes() for path in sorted((hudi_rs_root() / "core" / "log_files").rglob(".*.log.*"))]


def hfiles() -> list[bytes]:
    """HFiles of metadata tables and of HBase's own writer; in most of them no checksum stands before the bytes that are
    mutated.
    """
    schema = '{"type":"record","name":"r","fields":[]}'
    small = [(f"key-{index:04}".encode(), bytes([index % 251]) * (index % 40)) for index in range(120)]
    own = [
        hfile(small, schema=schema, codec=Codec.NONE, block_size=512),
        hfile(small, schema=schema, block_size=1024, meta_blocks={"bloomFilter": b"0123456789" * 8}),
        write_hfile([], schema=schema),
    ]
    folder = hudi_rs_root() / "core" / "hfile"
    foreign = [path.read_bytes() for path in sorted(folder.glob("*.hfile")) if path.stat().st_size <= LARGEST]
    tables = picked({"6": ("mdt_all_cow",), "9": ("mdt_all_cow",)}, lambda path: path.endswith(".hfile"), most=2)
    return [
        seed for data in (*own, *tables) for seed in (data, without_checksums(data), without_checksums(data))
    ] + foreign


def without_checksums(hfile: bytes) -> bytes:
    """The same HFile with every block's checksum type set to NULL, so that a changed byte is decoded and not just found
    out.
    """
    data = bytearray(hfile)
    for magic in (b"DATABLK*", b"IDXROOT2", b"IDXLEAF2", b"IDXINTE2", b"METABLKc", b"FILEINF2"):
        at = data.find(magic)
        while at >= 0:
            if at + 33 <= len(data):
                data[at + 24] = 0
            at = data.find(magic, at + 8)
    return bytes(data)


def timeline_files(*endings: str) -> list[bytes]:
    """Files of active timelines whose names end so, of all versions."""
    cases = {
        "6": (
            "mor_compacted",
            "clustered_cow",
            "insert_overwrite_table",
            "cleaned_commits_cow",
            "rolled_back_mor",
            "savepoint_cow",
        ),
        "8": ("mor_compacted", "clustered_cow", "insert_overwrite_table", "cleaned_commits_cow", "rolled_back_mor"),
        "9": (
            "mor_compacted",
            "clustered_cow",
            "insert_overwrite_table",
            "cleaned_commits_cow",
            "restored_then_written",
        ),
    }
    return picked(
        cases, lambda path: path.startswith(".hoodie/") and path.count("/") <= 2 and path.endswith(endings), most=2
    )


def of_paths(version: str, case: str, requested: Callable[[str], bool]) -> list[bytes]:
    """Files of one table, whatever their number."""
    return [
        data for path, data in sorted(members(version, case).items()) if requested(path) and 0 < len(data) <= LARGEST
    ]
