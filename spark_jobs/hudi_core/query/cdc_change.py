"""What a commit did to one file group: the unit of a change-data query (HoodieCDCFileSplit), and its JSON form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError
from hudi_core.model.names import parse_log_file
from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.view.file_group import DataFile, FileSlice, slice_from_json, slice_to_json

CDC_SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""What a change-data query returns: i, u or d; the commit's instant; the row before and after as JSON text."""
_SOURCE = "split of a change-data read"


@dataclass(frozen=True, slots=True)
class Image:
    """A file slice before or after a commit.

    `up_to` is the newest commit whose log blocks belong to it, None the query's own. Where not `inclusive`, the blocks
    of `up_to` itself do not.
    """

    file_slice: FileSlice
    up_to: str | None = None
    inclusive: bool = True

    def to_json(self) -> Json:
        """The image as a JSON object."""
        return {"slice": slice_to_json(self.file_slice), "up_to": self.up_to, "inclusive": self.inclusive}

    @staticmethod
    def from_json(raw: Json | None) -> Image | None:
        """The inverse of to_json."""
        return None if raw is None else Image(slice_from_json(raw["slice"]), raw["up_to"], bool(raw["inclusive"]))


@dataclass(frozen=True, slots=True)
class Change:
    """One commit's change of one file group.

    With `logs`, change-data logs hold the changes, and the images hold what the logs lack. Without, the changes are the
    difference of the images: rows of `after` alone were inserted when there is no `before`, rows of `before` alone were
    deleted when there is no `after`.
    """

    instant: str
    partition: str
    logs: tuple[DataFile, ...] = ()
    before: Image | None = None
    after: Image | None = None

    def files(self) -> list[DataFile]:
        """Every file that a reader of the change opens."""
        found = list(self.logs)
        for image in (self.before, self.after):
            if image is not None:
                found += [
                    *([] if image.file_slice.base_file is None else [image.file_slice.base_file]),
                    *image.file_slice.log_files,
                ]
        return found

    def to_json(self) -> Json:
        """The change as a JSON object; `bytes` is the size of its files."""
        return {
            "instant": self.instant,
            "partition": self.partition,
            "logs": [{"name": file.name, "size": file.size} for file in self.logs],
            "before": None if self.before is None else self.before.to_json(),
            "after": None if self.after is None else self.after.to_json(),
            "bytes": sum(file.size for file in self.files()),
        }

    @staticmethod
    def from_json(raw: Json) -> Change:
        """The inverse of to_json.

        Raises ConfigError or FormatError for anything else, including names outside the table.
        """
        try:
            partition = check_partition(raw["partition"], source=_SOURCE)
            logs = tuple(
                DataFile(partition, check_file_name(item["name"], source=_SOURCE), int(item["size"]))
                for item in raw["logs"]
            )
            for file in logs:
                parse_log_file(file.name)
            return Change(
                str(raw["instant"]), partition, logs, Image.from_json(raw["before"]), Image.from_json(raw["after"])
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"{_SOURCE} is not what this version writes: {error!r}") from error
