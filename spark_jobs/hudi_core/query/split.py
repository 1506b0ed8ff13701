"""A split of a read: a file slice as JSON (view.slice_json)."""

from __future__ import annotations

from hudi_core.view.file_group import FileSlice
from hudi_core.view.slice_json import slice_from_json as slice_from_json
from hudi_core.view.slice_json import slice_to_json as slice_to_json


def files_of(item: FileSlice) -> int:
    """How many files a reader of the slice opens."""
    return len(item.log_files) + (item.base_file is not None)
