"""A file slice as JSON: what travels to the executor that reads it, and its names checked when it arrives."""

from __future__ import annotations

from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError, FormatError
from hudi_core.model.ids import FileGroupId
from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.view.file_group import DataFile, FileSlice

_SOURCE = "file slice of a unit"


def slice_to_json(item: FileSlice) -> Json:
    """The slice with its sizes; `bytes` is that of its base and log files, by which slices may be binned."""
    return {
        "partition": item.file_group.partition,
        "file_id": item.file_group.file_id,
        "base_instant": item.base_instant,
        "base_file": None if item.base_file is None else _file_to_json(item.base_file),
        "log_files": [_file_to_json(file) for file in item.log_files],
        "bytes": item.size,
    }


def slice_from_json(raw: Json) -> FileSlice:
    """The inverse of slice_to_json.

    Raises ConfigError or FormatError for anything else, including names outside the table.
    """
    try:
        partition = check_partition(raw["partition"], source=_SOURCE)
        base = raw["base_file"]
        return FileSlice(
            FileGroupId(partition, check_file_name(raw["file_id"], source=_SOURCE)),
            str(raw["base_instant"]),
            None if base is None else _file_from_json(partition, base),
            tuple(_file_from_json(partition, file) for file in raw["log_files"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{_SOURCE} is not what this version writes: {error!r}") from error


def check_slice(item: FileSlice) -> FileSlice:
    """The slice as it is; raises FormatError for names that leave the table, or its partition."""
    group = item.file_group
    check_partition(group.partition, source=_SOURCE)
    check_file_name(group.file_id, source=_SOURCE)
    for file in item.files:
        check_file_name(file.name, source=_SOURCE)
        if file.partition != group.partition:
            raise FormatError(f"{file.path!r} is not in the partition {group.partition!r}", path=_SOURCE)
    return item


def _file_to_json(file: DataFile) -> Json:
    return {"name": file.name, "size": file.size}


def _file_from_json(partition: str, raw: Json) -> DataFile:
    return DataFile(partition, check_file_name(raw["name"], source=_SOURCE), int(raw["size"]))
