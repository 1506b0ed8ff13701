"""Base instants that are earlier than every timeline: in version 6 the file groups of an index begin under one that is
built beside writers.

Everybody takes a slice for committed whose base instant is before the timeline starts (containsOrBeforeTimelineStarts):
so writers of all lines append to it what they tell the index, and there is no pending deltacommit that one of them
could take for a failed one. Nobody reads the index before the properties list it. Such an instant says nothing of when
the index began: its partition metadata does.
"""

from __future__ import annotations

import re
from typing import Final

from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.validity import SOLO_COMMIT
from hudi_core.model.partition import PARTITION_METADATA, join
from hudi_core.storage.base import Storage

_EARLY: Final = (f"{SOLO_COMMIT}0", f"{SOLO_COMMIT}00")
"""Metadata tables start at SOLO_COMMIT and 010 in version 6, and at SOLO_COMMIT and 000 from version 8 on, to which a
table may be upgraded.
"""
INDEXER_SUFFIX: Final = "004"
"""OperationSuffix.METADATA_INDEXER: how real Hudi's indexer names its deltacommit in version 6."""
_COMMIT_TIME: Final = re.compile(rb"^commitTime=(\d+)\s*$", re.MULTILINE)


def early_instant(epoch: int) -> str:
    """The base instant of what the claim `epoch` builds: another one than that of the claim before."""
    return _EARLY[epoch % len(_EARLY)]


def is_early(base_instant: str) -> bool:
    """Whether a base instant is of an index that was built beside writers in version 6."""
    return base_instant in _EARLY


def initialization_time(last: str | None) -> str:
    """When an index begins that holds the data table up to its latest completed instant `last`, as real Hudi's indexer
    of version 6 names it.
    """
    return SOLO_COMMIT if last is None else f"{last}{INDEXER_SUFFIX}"


def initialized_at(storage: Storage, partition: str) -> str:
    """The initialization_time of a partition whose file groups began under an early instant. Raises CorruptFileError
    where nothing says it.
    """
    path = join(f"{ROOT}/{partition}", PARTITION_METADATA)
    try:
        found = _COMMIT_TIME.search(storage.read(path))
    except StorageNotFoundError:
        found = None
    if found is None:
        raise CorruptFileError(
            "does not say when the index began",
            path=path,
            remedy=(
                f"build it anew: `hudictl metadata drop TABLE --partition {partition}`, then `hudictl metadata create`"
            ),
        )
    return found[1].decode("ascii")
