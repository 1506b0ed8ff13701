"""What the splits of a read plan hold."""

from __future__ import annotations

from hudi_core.engine.protocol import Json
from hudi_core.engine.serializer import from_text
from hudi_core.query.cdc_read import Change
from hudi_core.view.file_group import FileSlice


def slice_of(split: Json) -> FileSlice:
    return from_text(FileSlice, split["part"])


def change_of(split: Json) -> Change:
    return from_text(Change, split["part"])
