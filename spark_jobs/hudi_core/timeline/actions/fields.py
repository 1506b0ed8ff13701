"""The members of timeline files. A file is decoded with the schema in it, so every member's type is checked. Of a path
in a plan only the file name counts, and its folder must be the partition (name_in_partition). Which partition paths are
safe: model/partition.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.model.partition import check_file_name

T = TypeVar("T")

DAMAGED: Final = "the file is damaged; restore it from a backup, or roll the instant back with Hudi's CLI"
"""A remedy."""
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


def member(raw: dict[str, Any], name: str, kind: type | tuple[type, ...], *, path: str, default: Any = None) -> Any:
    """The member `name` of `raw`, `default` when absent or null; raises CorruptFileError when it is not of `kind`."""
    value = raw.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise CorruptFileError(f"{name!r} holds a {type(value).__name__}", path=path, remedy=DAMAGED)
    if kind is int and isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise CorruptFileError(f"{name!r} holds a number that is no long", path=path, remedy=DAMAGED)
    return value


def _of_items(raw: dict[str, Any], name: str, kind: type, fits: Callable[[Any], bool], expected: str, path: str) -> Any:
    """A list or map whose items all fit, empty when it is absent or null."""
    if raw.get(name) is None:
        return kind()
    found = member(raw, name, kind, path=path)
    if not all(map(fits, found.values() if kind is dict else found)):
        raise CorruptFileError(f"{name!r} holds something other than {expected}", path=path)
    return found


def _is_record(item: Any) -> bool:
    return isinstance(item, dict)


def _is_text(item: Any) -> bool:
    return isinstance(item, str)


def _is_number(item: Any) -> bool:
    return isinstance(item, float | int) and abs(item) < 2**63


def records(raw: dict[str, Any], name: str, *, path: str) -> list[dict[str, Any]]:
    """A list of records, empty when it is absent or null; raises CorruptFileError naming `path`, as all below."""
    items: list[dict[str, Any]] = _of_items(raw, name, list, _is_record, "records", path)
    return items


def record_map(raw: dict[str, Any], name: str, *, path: str) -> dict[str, dict[str, Any]]:
    items: dict[str, dict[str, Any]] = _of_items(raw, name, dict, _is_record, "records", path)
    return items


def texts(raw: dict[str, Any], name: str, *, path: str) -> list[str]:
    items: list[str] = _of_items(raw, name, list, _is_text, "text", path)
    return items


def text_map(raw: dict[str, Any], name: str, *, path: str) -> dict[str, str]:
    """A map of texts, empty when it is absent or null."""
    items: dict[str, str] = _of_items(raw, name, dict, _is_text, "text", path)
    return items


def numbers(raw: dict[str, Any], name: str, *, path: str) -> dict[str, float]:
    """A map of numbers that fit into a long, empty when it is absent or null."""
    items: dict[str, float] = _of_items(raw, name, dict, _is_number, "numbers of 64 bits", path)
    return items


def text(raw: dict[str, Any], name: str, *, path: str) -> str:
    value: str = member(raw, name, str, path=path, default="")
    return value


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


def name_in_partition(value: str, partition: str, *, path: str, remedy: str) -> str:
    """The plain file name of an absolute path, which counts only when it ends in this partition's folder. The part
    before it, where the table was for the plan's writer, is never followed. Raises FormatError naming `path`.
    """
    folder, _, name = value.rpartition("/")
    if folder and (".." in folder.split("/") or (partition and not f"/{folder}".endswith(f"/{partition}"))):
        raise FormatError(f"path {value!r} does not lie in partition {partition!r}", path=path, remedy=remedy)
    return check_file_name(name, source=path)
