"""Up to when an index is known to hold every change of the table, as this engine recorded it in the table's properties
(docs/decisions/0018).

What Hudi's writers left out of some indexes shows on the timeline alone, as long as that holds the commit. A property
tells how far back it has to be looked at: `airflow_hudi.index.whole_until.<index>` is an instant and the modification
time of the index's folder. All commits up to the instant are in the index, unless it was dropped and built again since,
which makes another folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.model.partition import PARTITION_METADATA
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.timeline import Timeline

PREFIX: Final = "airflow_hudi.index.whole_until."


def marks(data: Timeline, folders: Mapping[str, Iterable[FileInfo]]) -> dict[str, str]:
    """The properties which say so of what `data` shows as completed; by index the files of its folder."""
    found: dict[str, str] = {}
    for name, files in folders.items():
        instant, made = completed_up_to(data), _made(files)
        if instant is not None and made is not None:
            found[f"{PREFIX}{name}"] = f"{instant}:{made}"
    return found


def marked_until(config: TableConfig, name: str, files: Iterable[FileInfo]) -> str | None:
    """The instant up to which index `name` is known to be whole, if any. `files` are those of its folder."""
    instant, _, made = config.raw.get(f"{PREFIX}{name}", "").partition(":")
    return instant if instant.isdigit() and made == str(_made(files)) else None


def completed_up_to(data: Timeline, moment: str | None = None) -> str | None:
    """The last commit with which all requested up to it had completed at `moment` (None: now), if any."""
    commits = data.commits()
    under_way = {item.requested_time for item in commits if moment is not None and item.completed_at > moment}
    pending = data.pending().of_actions(*COMMIT_ACTIONS, Action.CLUSTERING).requested_times
    first = min(under_way.union(pending), default=None)
    return max((item.requested_time for item in commits if first is None or item.requested_time < first), default=None)


def reaches_back(data: Timeline, instant: str) -> bool:
    """Whether every commit after `instant` is on the active timeline (savepoints apart), and no restore came since."""
    saved = data.savepoints()
    restores = data.of_actions(Action.RESTORE).after(instant)
    older = (item.requested_time <= instant for item in data.commits() if item.requested_time not in saved)
    return not len(restores) and next(older, False)


def _made(files: Iterable[FileInfo]) -> int | None:
    """When an index's folder was made, in whole seconds: the time of a file that is written then, and only then."""
    return next((int(info.modified) for info in files if info.name.startswith(PARTITION_METADATA)), None)
