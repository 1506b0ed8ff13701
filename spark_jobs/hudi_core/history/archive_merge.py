"""Ends a merge of small archive files that Hudi 0.15 left unfinished (verifyLastMergeArchiveFilesIfNecessary).

A merge writes the plan `mergeArchivePlan`, the merged file, deletes the files it was made of, and the plan last. While
the plan exists, the merged file may be half written, or hold the only copy of instants whose own file is deleted.
"""

from __future__ import annotations

import logging
from typing import Final

from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.history.log_archive import MERGE_PLAN, archive_files, check_whole
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.container import decode_datum
from hudi_core.timeline.actions.plan_fields import text, texts

log = logging.getLogger(__name__)

_REMEDY: Final = "restore the files that the plan names from a copy; the instants in them are nowhere else"


def finish_merge(storage: Storage, folder: str) -> bool:
    """Rolls an unfinished merge back, or finishes it when a file is deleted already; False when there is none.

    Called under the table lock. Killed anywhere, it can be called again. Raises CorruptFileError, with nothing deleted,
    when files are missing and the merged file does not hold their content: it is missing, cut or damaged. Paths of the
    plan are not followed, only their names count.
    """
    path = f"{folder}/{MERGE_PLAN}"
    try:
        data = storage.read(path)
    except StorageNotFoundError:
        return False
    try:
        plan = decode_datum(data, path=path)
        merged = _name(text(plan, "mergedArchiveFileName", path=path), path)
        candidates = [_name(item, path) for item in texts(plan, "candidate", path=path)]
    except CorruptFileError:
        log.warning("%s was not written to its end: nothing was merged yet, it is removed", path)
        storage.delete(path)
        return True
    there = {info.name: info for _, info in archive_files(storage, folder)}
    if merged in candidates:
        raise FormatError(f"the plan merges {merged} into itself", path=path, remedy=_REMEDY)
    if all(name in there for name in candidates):
        log.info("the merge into %s is rolled back", merged)
        storage.delete(f"{folder}/{merged}")
    else:
        found = there.get(merged)
        if found is None:
            raise CorruptFileError(
                f"files of the merge are deleted, and {merged}, which should hold their content, is missing",
                path=path,
                remedy=_REMEDY,
            )
        check_whole(storage, found)
        log.info("the merge into %s is ended", merged)
        for name in candidates:
            storage.delete(f"{folder}/{name}")
    storage.delete(path)
    return True


def _name(value: str, path: str) -> str:
    """The plain name of a file of the archive. Raises FormatError for any other."""
    name = value.rsplit("/", 1)[-1]
    check_file_name(name, source=path)
    if not name.startswith(".commits_.archive."):
        raise FormatError(f"{value!r} is no file of the archive", path=path, remedy=_REMEDY)
    return name
