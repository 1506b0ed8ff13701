"""Golden tables with a file group as a metadata-only bootstrap leaves it (HoodieBootstrapHandle of Hudi 0.15 to 1.2):
its base file holds the _hoodie_ columns alone, and is named after the bootstrap's instant. Later writes append log
files to it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from hudi_core.config.table_config import update_properties
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.model.names import META_FIELDS, BaseFileName, LogFileName, parse_data_file
from hudi_core.storage.local import LocalStorage


def bootstrap_one(table: Path, *, with_logs: bool = True) -> str:
    """Makes a file group of one base file, with log files or without any, into that of a bootstrap; the table has no
    metadata table then. Returns the path of its base file, relative to the table.
    """
    storage = LocalStorage(table)
    drop_metadata_table(storage)
    update_properties(storage, {"hoodie.bootstrap.base.path": "/a/table/of/parquet/files"})
    files: dict[str, list[tuple[Path, BaseFileName | LogFileName]]] = {}
    for path in sorted(table.rglob("*")):
        name = parse_data_file(path.name)
        if name is not None and ".hoodie" not in path.parts:
            files.setdefault(name.file_id, []).append((path, name))
    for found in files.values():
        (base, name), *others = sorted(found, key=lambda item: isinstance(item[1], LogFileName))
        if not isinstance(name, BaseFileName) or bool(others) is not with_logs:
            continue
        if any(isinstance(other, BaseFileName) for _, other in others):
            continue
        for path, log in others:
            if log.instant == name.instant:  # layout 1
                path.rename(path.with_name(str(replace(log, instant=BOOTSTRAP_INSTANT))))
        skeleton = base.with_name(str(replace(name, instant=BOOTSTRAP_INSTANT)))
        pq.write_table(pq.read_table(base, columns=[*META_FIELDS], partitioning=None), skeleton)
        base.unlink()
        return skeleton.relative_to(table).as_posix()
    raise AssertionError("no such file group")
