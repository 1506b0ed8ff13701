"""Changes of data files by completed cleans and rollbacks, as the metadata table records them. Pure."""

from __future__ import annotations

from typing import Any

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_partition
from hudi_core.timeline.actions.plan_fields import texts
from hudi_core.timeline.actions.rollback import metadata_of


def clean_changes(details: dict[str, Any], *, path: str) -> FileChanges:
    """The files of a clean's plan (`deletePathPatterns`), there or not, and the partitions that went.

    `details` is the decoded `clean` file at `path`. Raises CorruptFileError, or FormatError for a partition outside the
    table.
    """
    parts = details.get("partitionMetadata")
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        raise CorruptFileError("the clean's metadata does not say what it deleted", path=path)
    deleted: dict[str, frozenset[str]] = {}
    for partition, part in parts.items():
        deleted[check_partition(partition, source=path)] = _names(texts(part, "deletePathPatterns", path=path), path)
    return FileChanges(
        deleted=deleted,
        dropped_partitions=frozenset(name for name, part in parts.items() if part.get("isPartitionDeleted") is True),
    )


def rollback_changes(details: dict[str, Any], *, path: str) -> FileChanges:
    """The files that a rollback deleted; log files of its command blocks, and those whose blocks these cancel, with
    their bytes.

    `details` is the decoded `rollback` file at `path`; errors as metadata_of, and CorruptFileError for what is no data
    file.
    """
    written: dict[str, dict[str, int]] = {}
    deleted: dict[str, frozenset[str]] = {}
    for part in metadata_of(details, path=path).partitions:
        if part.rollback_log_files:
            sizes = {**part.failed_commit_log_files, **part.rollback_log_files}
            written[part.partition] = {name: sizes[file] for file in sizes for name in _names([file], path)}
        if part.deleted:
            deleted[part.partition] = _names(list(part.deleted), path)
    return FileChanges(written, deleted)


def _names(paths: list[str], path: str) -> frozenset[str]:
    names = frozenset(item.rpartition("/")[2] for item in paths)
    wrong = sorted(name for name in names if parse_data_file(name) is None)
    if wrong:
        raise CorruptFileError(f"{wrong[0]!r} is the name of no data file", path=path)
    return names
