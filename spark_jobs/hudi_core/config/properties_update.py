"""Changes `hoodie.properties` so that a crash at any point leaves readers a whole file (HoodieTableConfig.update).

Hudi deletes the file between writing its backup and writing it again, and readers take the backup then. Here the file
is replaced at once; the backup exists meanwhile all the same, so that Hudi's own recovery finds what it expects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage

_REMEDY = "no writer may change the properties without the table lock; find the other writer, then run again"


def update_properties(
    storage: Storage, changes: Mapping[str, str], *, delete: Collection[str] = (), base: str = ""
) -> TableConfig:
    """Sets and deletes properties of the table at `base` (`""`: the storage's root); returns all properties.

    The caller holds the table lock. It may be repeated: nothing is written where nothing changes, and what a crash left
    of an earlier update is repaired first. Raises ConflictError when another writer is changing the properties, the
    errors of TableConfig.load when there are none that are whole.
    """
    main, backup = join(base, PROPERTIES), join(base, BACKUP)
    old = _recovered(storage, main, backup)
    raw = parse_properties(old, path=main)
    new = {key: value for key, value in (raw | dict(changes)).items() if key not in delete}
    if not CHECKSUM.is_set(new):
        new[CHECKSUM.name] = str(table_checksum(new.get(DATABASE.name, ""), new[NAME.name]))
    if new == raw:
        return TableConfig.of(raw, path=main)
    # Every check that a reader makes, before anything is written.
    config = TableConfig.of(new, path=main)
    data = render_properties(new, comments=_stamp())
    try:
        storage.create_exclusive(backup, old)
    except StorageExistsError as error:
        raise ConflictError("another writer is changing the table's properties", path=backup, remedy=_REMEDY) from error
    storage.write(main, data)
    if parse_properties(storage.read(main), path=main) != new:
        raise ConflictError("the properties are not what was just written", path=main, remedy=_REMEDY)
    storage.delete(backup)
    return config


def _recovered(storage: Storage, main: str, backup: str) -> bytes:
    """The whole file, after a crash is repaired: a damaged or missing file is restored from the backup.

    The backup is deleted then.
    """
    failure: FormatError | ConfigError | None = None
    for path in (main, backup):
        try:
            data = storage.read(path)
            TableConfig.parse(data, path=path)
        except StorageNotFoundError:
            continue
        except (CorruptFileError, ConfigError) as error:
            failure = error if path == main else failure
            continue
        if path == backup:
            storage.write(main, data)
        storage.delete(backup)
        return data
    raise failure or ConfigError(
        f"{storage.uri} is not a Hudi table: the file is missing", path=main, remedy="check the table's address"
    )


def _stamp() -> tuple[str, str]:
    """The two comment lines that Hudi writes."""
    now = datetime.now(timezone.utc)
    return f"Updated at {now.isoformat(timespec='microseconds').replace('+00:00', 'Z')}", now.strftime(
        "%a %b %d %H:%M:%S UTC %Y"
    )
