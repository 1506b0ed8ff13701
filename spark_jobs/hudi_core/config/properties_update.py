"""Changes `hoodie.properties` so that a crash at any point leaves readers a whole file (HoodieTableConfig.update).

Hudi deletes the file between writing its backup and writing it again, and readers take the backup then. Here the file
is replaced at once; the backup exists meanwhile all the same, so that Hudi's own recovery finds what it expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from hudi_core.config.properties import parse_properties, render_properties
from hudi_core.config.table_config import BACKUP, CHECKSUM, DATABASE, NAME, PROPERTIES, TableConfig, table_checksum
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    FormatError,
    StorageExistsError,
    StorageNotFoundError,
)
from hudi_core.storage.base import Storage

_REMEDY = "no writer may change the properties without the table lock; find the other writer, then run again"


def update_properties(storage: Storage, changes: Mapping[str, str]) -> TableConfig:
    """Sets properties of the table, under the table lock; returns all of them. Nothing is written where nothing
    changes, and what a crash left of an earlier update is repaired first. Raises ConflictError when another writer is
    changing the properties, the errors of TableConfig.load when there are none that are whole.
    """
    old = _recovered(storage)
    raw = parse_properties(old, path=PROPERTIES)
    new = raw | dict(changes)
    if not CHECKSUM.is_set(new):
        new[CHECKSUM.name] = str(table_checksum(new.get(DATABASE.name, ""), new[NAME.name]))
    if new == raw:
        return TableConfig.of(raw)
    # Every check that a reader makes, before anything is written.
    config = TableConfig.of(new)
    data = render_properties(new, comments=_stamp())
    try:
        storage.create_exclusive(BACKUP, old)
    except StorageExistsError as error:
        raise ConflictError("another writer is changing the table's properties", path=BACKUP, remedy=_REMEDY) from error
    storage.write(PROPERTIES, data)
    if parse_properties(storage.read(PROPERTIES), path=PROPERTIES) != new:
        raise ConflictError("the properties are not what was just written", path=PROPERTIES, remedy=_REMEDY)
    storage.delete(BACKUP)
    return config


def _recovered(storage: Storage) -> bytes:
    """The whole file, after a crash is repaired: a damaged or missing file is restored from the backup, which is
    deleted.
    """
    failure: FormatError | ConfigError | None = None
    for path in (PROPERTIES, BACKUP):
        try:
            data = storage.read(path)
            TableConfig.parse(data, path=path)
        except StorageNotFoundError:
            continue
        except (CorruptFileError, ConfigError) as error:
            failure = error if path == PROPERTIES else failure
            continue
        if path == BACKUP:
            storage.write(PROPERTIES, data)
        storage.delete(BACKUP)
        return data
    raise failure or ConfigError(
        f"{storage.uri} is not a Hudi table: the file is missing", path=PROPERTIES, remedy="check the table's address"
    )


def _stamp() -> tuple[str, str]:
    """The two comment lines that Hudi writes."""
    now = datetime.now(timezone.utc)
    return f"Updated at {now.isoformat(timespec='microseconds').replace('+00:00', 'Z')}", now.strftime(
        "%a %b %d %H:%M:%S UTC %Y"
    )
