"""Fields of plans. A plan is decoded with the schema in its own file, so every field's type is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.model.partition import check_file_name
from hudi_core.timeline.actions.pretty_json import member

T = TypeVar("T")


def records(raw: dict[str, Any], name: str, *, path: str) -> list[dict[str, Any]]:
    """A list of records, empty when it is absent or null; raises CorruptFileError naming `path`."""
    items: list[Any] = member(raw, name, list, path=path, default=[])
    if not all(isinstance(item, dict) for item in items):
        raise CorruptFileError(f"{name!r} holds something other than records", path=path)
    return items


def record_map(raw: dict[str, Any], name: str, *, path: str) -> dict[str, dict[str, Any]]:
    """A map of records, empty when it is absent or null; raises CorruptFileError naming `path`."""
    items: dict[str, Any] = member(raw, name, dict, path=path, default={})
    if not all(isinstance(item, dict) for item in items.values()):
        raise CorruptFileError(f"{name!r} holds something other than records", path=path)
    return items


def texts(raw: dict[str, Any], name: str, *, path: str) -> list[str]:
    """A list of texts, empty when it is absent or null; raises CorruptFileError naming `path`."""
    items: list[Any] = member(raw, name, list, path=path, default=[])
    if not all(isinstance(item, str) for item in items):
        raise CorruptFileError(f"{name!r} holds something other than text", path=path)
    return items


def text(raw: dict[str, Any], name: str, *, path: str) -> str:
    """A text, `""` when it is absent or null; raises CorruptFileError naming `path`."""
    value: str = member(raw, name, str, path=path, default="")
    return value


def text_map(raw: dict[str, Any], name: str, *, path: str) -> dict[str, str]:
    """A map of texts, empty when it is absent or null; raises CorruptFileError naming `path`."""
    items: dict[str, Any] = member(raw, name, dict, path=path, default={})
    if not all(isinstance(item, str) for item in items.values()):
        raise CorruptFileError(f"{name!r} holds something other than text", path=path)
    return items


def plan_version(raw: dict[str, Any], plan: str, *, path: str) -> int:
    """1 or 2, the version of a clean or compaction plan; raises UnsupportedError naming `path` for any other."""
    version: int = member(raw, "version", int, path=path, default=1)
    if version not in (1, 2):
        raise UnsupportedError(f"{plan} version {version} is not supported", path=path, remedy="versions 1 and 2 are")
    return version


def parsed(parse: Callable[[str], T], name: str, *, path: str, remedy: str) -> T:
    """What `parse` makes of a file name in a plan; raises FormatError naming the plan and what helps."""
    try:
        return parse(name)
    except FormatError as error:
        raise FormatError(error.message, path=path, remedy=remedy) from error


def numbers(raw: dict[str, Any], name: str, *, path: str) -> dict[str, float]:
    """A map of numbers that fit into a long, empty when it is absent or null; raises CorruptFileError naming `path`."""
    items: dict[str, Any] = member(raw, name, dict, path=path, default={})
    if not all(isinstance(item, float | int) and abs(item) < 2**63 for item in items.values()):
        raise CorruptFileError(f"{name!r} holds something other than numbers of 64 bits", path=path)
    return items


def name_in_partition(value: str, partition: str, *, path: str, remedy: str) -> str:
    """The plain file name of an absolute path, which counts only when it ends in this partition's folder.

    The part before the partition is never followed: it is where the table was for the writer of the plan. Raises
    FormatError naming `path`.
    """
    folder, _, name = value.rpartition("/")
    if folder and (".." in folder.split("/") or (partition and not f"/{folder}".endswith(f"/{partition}"))):
        raise FormatError(f"path {value!r} does not lie in partition {partition!r}", path=path, remedy=remedy)
    return check_file_name(name, source=path)
