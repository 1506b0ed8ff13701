"""A completed commit that is to go, and the partitions of the metadata table that began behind it: they hold what it did without its deltacommit."""

from __future__ import annotations

from hudi_core.errors import TimelineError
from hudi_core.metadata_table.begun import begun_since
from hudi_core.metadata_table.file_group import FILES_PARTITION
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import Instant


def check_not_begun_since(context: TableContext, target: Instant) -> None:
    """Raises TimelineError, before anything is written, where partitions began since `target` completed.

    A write that is pending is in none of them. Asked under the table lock when a rollback begins, which makes its instant a pending one: what begins
    from then on holds nothing of it.
    """
    if not target.is_completed or not context.has_metadata_table:
        return
    late = sorted(begun_since(context.storage, context.config, OwnTimeline(context.storage, context.config), target))
    if late:
        options = "" if FILES_PARTITION in late else "".join(f" --partition {name}" for name in late)
        raise TimelineError(
            f"{', '.join(late)} of the metadata table began after {target.action} {target.requested_time}, which cannot be taken out of that",
            path=context.active.path_of(target),
            remedy=f"drop it with `hudictl metadata drop TABLE{options}`, roll the instant back again, then create it anew",
        )
