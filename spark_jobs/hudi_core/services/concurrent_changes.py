"""What others have done or planned since an operation began, and stops its commit: commits to the file groups of a
write, pending plans on them, and rollbacks of commits that it knew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Set
from dataclasses import field

from hudi_core.errors import ConflictError
from hudi_core.filegroup.write.buckets import place_of_bucket
from hudi_core.frozen import dataclass
from hudi_core.history.archived import begin_of_writes
from hudi_core.metadata_table.records.file_statistics import REWRITES
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY
from hudi_core.timeline.instant import COMMIT_ACTIONS, REPLACING_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import PLANS_OF_FILE_GROUPS, pending_plan_on
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import PendingWork


@dataclass(frozen=True, slots=True)
class Groups:
    """The file groups of a write: those whose rows are `merged` to base files, and those whose rows are `appended` to
    log files, each with its log instant (WritePlan). `new_buckets` are the places of the buckets that the write
    makes (place_of_bucket, with `by_hash`). In the partitions `hashed` a clustering may resize any bucket.
    """

    merged: frozenset[FileGroupId] = frozenset()
    appended: Mapping[FileGroupId, str] = field(default_factory=dict)
    new_buckets: frozenset[str] = frozenset()
    by_hash: bool = False
    hashed: frozenset[str] = frozenset()

    def makes(self, group: FileGroupId) -> bool:
        """Whether the write makes the bucket of this file group."""
        return bool(self.new_buckets) and place_of_bucket(group, by_hash=self.by_hash) in self.new_buckets

    @property
    def all(self) -> frozenset[FileGroupId]:
        return self.merged | self.appended.keys()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a query that makes rows has seen of the table that it reads: the requested times of the commits before the
    query, where the timeline began (begin_of_writes), and its newest requested time.
    """

    commits: frozenset[str]
    begin: str | None
    newest: str

    @staticmethod
    def of(timeline: Timeline) -> Seen:
        newest = max(timeline.requested_times, default="")
        return Seen(timeline.commits().requested_times, begin_of_writes(timeline), newest)

    def archived_since(self, context: TableContext, now: Timeline) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yields the commits that came after these and are archived: before a write is requested, nothing holds an
        archival back. A change of the begin shows one, since an archival takes the oldest writes.
        """
        if begin_of_writes(now) == self.begin:
            return
        history = context.history()
        yield from history.commits(history.timeline().of_actions(*COMMIT_ACTIONS).filter(self._is_later))

    def _is_later(self, commit: Instant) -> bool:
        time = commit.requested_time
        # Without a begin all writes before the query are archived, or kept by savepoints.
        return time > self.newest if self.begin is None else time >= self.begin and time not in self.commits


def check_no_plans(context: TableContext, timeline: Timeline, groups: Groups) -> None:
    """Raises ConflictError where a pending plan is on a file group of the write (SparkRejectUpdateStrategy), or resizes
    buckets of its partitions: these may have no file group yet. Log files may be appended beside compactions. In layout
    1 a compaction that was planned since would not see them.
    """
    check_no_plans_on(context, timeline, lambda group: group in groups.merged)
    check_not_replaced(context, timeline, groups.appended, groups.hashed)
    if not groups.appended or context.active.layout > 1:
        return
    pending = PendingWork.read(context.active, timeline)
    for group, instant in groups.appended.items():
        planned = pending.compaction_of(group)
        if planned not in (None, instant):
            raise ConflictError(
                f"compaction {planned} was planned on file group {group.file_id} of partition {group.partition!r} "
                "while rows were written to its log",
                path=context.active.path(str(planned), Action.COMPACTION, State.REQUESTED),
                remedy="run it again",
            )


def check_not_replaced(
    context: TableContext, timeline: Timeline, appended: Container[FileGroupId], hashed: Set[str]
) -> None:
    """Raises ConflictError where a pending plan replaces one of the file groups, or any of the partitions `hashed`."""
    check_no_plans_on(
        context, timeline, lambda group: group in appended or group.partition in hashed, REPLACING_ACTIONS
    )


def check_not_changed(
    context: TableContext, now: Timeline, instant: str, groups: Groups, known: Set[str], seen: Seen | None = None
) -> None:
    """Raises ConflictError where a commit that is not `known` changed a file group of the write: its rows would be lost
    behind the new base file (apache/hudi#19763), or ours in a group that was replaced, or that got a base file in
    layout 1, by a compaction or by rows that filled it; or where it made a bucket that the write makes
    (apache/hudi#7838), or resized buckets of its partitions. Also raises it where a known commit was rolled back. The
    rows that Spark or a predicate took from the table are of what it had `seen`: another commit that changed rows of
    the file groups counts, too, and a rollback of one that it saw. None for rows of files.
    """
    for item, is_known, archived in _commits(context, now, known, seen):
        is_seen = seen is None or item.requested_time in seen.commits
        if is_known and is_seen:
            continue
        metadata = context.active.read_commit(item) if archived is None else archived
        is_rewrite = metadata.compacted or metadata.operation_type in REWRITES
        if is_known and is_rewrite:
            continue
        files = [(FileGroupId(stat.partition_path, stat.file_id), stat) for stat in metadata.write_stats()]
        written, replaced = {group for group, _ in files}, {*metadata.replaced_file_groups()}
        based = {group for group, stat in files if stat.log_version is None}
        hiding = replaced | (based if context.active.layout == 1 else set())
        if not is_seen and not is_rewrite:
            hiding |= written
        changed = (written | replaced) & groups.merged | hiding & groups.appended.keys()
        changed |= {group for group in written if groups.makes(group)}
        changed |= {group for group in replaced if group.partition in groups.hashed}
        if changed:
            group = min(changed)
            raise ConflictError(
                f"{item.action} {item.requested_time} has changed file group {group.file_id} of partition "
                f"{group.partition!r}, which {instant} writes, since that began",
                path=context.active.path_of(item),
                remedy="run it again",
            )
    check_none_rolled_back(context, now, instant, known if seen is None else known | seen.commits)


def _commits(
    context: TableContext, now: Timeline, known: Set[str], seen: Seen | None
) -> Iterator[tuple[Instant, bool, CommitMetadata | None]]:
    """Yields each commit on the timeline, and each that came and was archived since the query, which the plan knew: the
    instant, whether the plan knew it, and its metadata if it is archived.
    """
    for item in now.commits():
        yield item, item.requested_time in known, None
    for item, metadata in () if seen is None else seen.archived_since(context, now):
        yield item, True, metadata


def check_no_plans_on(
    context: TableContext,
    timeline: Timeline,
    is_ours: Callable[[FileGroupId], bool],
    actions: Collection[str] = PLANS_OF_FILE_GROUPS,
) -> None:
    """Raises ConflictError where a pending plan of these actions is on a file group of ours: both would replace it."""
    pending = pending_plan_on(context.active, timeline, is_ours, actions)
    if pending is not None:
        item, shared = pending
        action = Action.CLUSTERING if item.pending_action == Action.REPLACE_COMMIT else item.pending_action
        raise ConflictError(
            f"{action} {item.requested_time} is pending on file groups of partition {shared.partition!r}, such as "
            f"{shared.file_id}",
            path=context.active.path_of(item),
            remedy=f"run it first, or drop it: hudictl unschedule TABLE {item.requested_time}",
        )


def commit_with_token(context: TableContext, now: Timeline, token: str | None, known: Set[str]) -> Instant | None:
    """Returns a commit that is not `known` and has the token: another run did the same work. The lock keeps two runs
    with a token apart, but a lock can be lost between its last check and the request. None without a token.
    """
    others = (commit for commit in now.commits() if token is not None and commit.requested_time not in known)
    for commit in others:
        if context.active.read_commit(commit, stats=False).extra_metadata.get(TOKEN_KEY) == token:
            return commit
    return None


def check_none_rolled_back(context: TableContext, now: Timeline, instant: str, known: Set[str]) -> None:
    """Raises ConflictError where one of the commits `known` is gone, or going to be rolled back: its rows would come
    back. A LAZY writer may roll it back whatever came later
    (BaseRollbackActionExecutor.validateRollbackCommitSequence).
    """
    rolled_back = context.rolled_back_among(known, now)
    if rolled_back is not None:
        raise ConflictError(
            f"commit {rolled_back} was rolled back since {instant} began",
            path=context.active.folder,
            remedy="run it again once the rollback is complete",
        )
