"""The definitions of a table's indexes: `.hoodie/.index_defs/index.json` (HoodieIndexDefinition)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.properties_update import update_properties
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.model.partition import check_relative_path
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.content import dump, load_object, read_stable
from hudi_core.timeline.actions.fields import member, text, texts

PATH_KEY: Final = "hoodie.table.index.defs.path"
_ROOT: Final = ".hoodie/"
DEFAULT_PATH: Final = ".hoodie/.index_defs/index.json"
_REMEDY: Final = "restore the file from a copy, or drop and create the indexes again"


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """`name` is the metadata partition's, `type` what its records are (`column_stats`, `secondary_index` …), `function`
    what is applied to the source field (`identity`, `lower` …). `version` is 1 or 2; a definition that names none has
    1.
    """

    name: str
    type: str
    function: str
    source_fields: tuple[str, ...]
    options: Mapping[str, str]
    version: int

    @property
    def is_partitioned(self) -> bool:
        """Of a record index: whether it is one per data partition."""
        return self.options.get("isPartitioned") == "true"


def load_index_definitions(storage: Storage, config: TableConfig) -> dict[str, IndexDefinition]:
    """The definitions by name; none where the properties name no file, or it is not there: nothing was indexed yet.

    Raises FormatError when the properties' path leaves `.hoodie`, CorruptFileError when the file is not what Hudi
    writes.
    """
    path = _path_of(config)
    if not path:
        return {}
    try:
        data = read_stable(storage, path)
    except StorageNotFoundError:
        return {}
    return parse_index_definitions(data, path=path)


def _path_of(config: TableConfig) -> str:
    """Where the properties say that the file is; empty when they do not say."""
    path = config.raw.get(PATH_KEY, "").strip()
    check_relative_path(path, source=config.path)
    if path and not path.startswith(_ROOT):
        raise FormatError(
            f"{PATH_KEY} is {path!r}, which is not below {_ROOT}", path=config.path, remedy="correct the property"
        )
    return path


def put_index_definitions(
    storage: Storage, config: TableConfig, added: Collection[IndexDefinition], removed: Collection[str] = ()
) -> TableConfig:
    """Adds or replaces definitions, and takes others away by name; returns the properties, which name the file then.

    The caller holds the table lock, and `config` was loaded under it. May be repeated. Raises as
    load_index_definitions.
    """
    old = load_index_definitions(storage, config)
    new = {name: item for name, item in (old | {item.name: item for item in added}).items() if name not in removed}
    if new == old:
        return config
    path = _path_of(config) or DEFAULT_PATH
    storage.write(path, render_index_definitions(new))
    return config if _path_of(config) else update_properties(storage, {PATH_KEY: path})


def render_index_definitions(definitions: Mapping[str, IndexDefinition]) -> bytes:
    """As Hudi 1.2 writes it; 1.0 passes over versions of indexes, without which 1.2 fails in table version 8, too."""
    return dump(
        {
            "indexDefinitions": {
                name: {
                    "indexName": item.name,
                    "indexType": item.type,
                    "indexFunction": item.function,
                    "sourceFields": list(item.source_fields),
                    "indexOptions": dict(item.options),
                    "version": f"V{item.version}",
                }
                for name, item in definitions.items()
            }
        }
    )


def parse_index_definitions(data: bytes, *, path: str) -> dict[str, IndexDefinition]:
    """Raises CorruptFileError naming `path`."""
    try:
        document = load_object(data, path=path) if data.strip() else {}
        entries = member(document, "indexDefinitions", dict, path=path, default={})
        return {name: _definition(name, entry, path) for name, entry in entries.items()}
    except CorruptFileError as error:
        raise CorruptFileError(f"index definitions: {error.message}", path=path, remedy=_REMEDY) from error


def _definition(name: str, entry: Any, path: str) -> IndexDefinition:
    if not isinstance(entry, dict):
        raise CorruptFileError(f"{name!r} is not a JSON object", path=path)
    version = text(entry, "version", path=path) or "V1"
    if version not in ("V1", "V2"):
        raise CorruptFileError(f"{name!r} is of the unknown version {version!r}", path=path)
    options = member(entry, "indexOptions", dict, path=path, default={})
    return IndexDefinition(
        text(entry, "indexName", path=path) or name,
        text(entry, "indexType", path=path),
        text(entry, "indexFunction", path=path),
        tuple(texts(entry, "sourceFields", path=path)),
        {key: str(value) for key, value in options.items()},
        int(version[1:]),
    )
