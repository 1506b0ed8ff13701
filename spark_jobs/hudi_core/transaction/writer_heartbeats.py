"""The heartbeats of Hudi's writers, and which of their writes have failed (HoodieHeartbeatClient).

`.hoodie/.heartbeat/<instant>` is an empty file that a writer with the lazy policy creates again every interval; its
modification time is the heartbeat. A writer with the eager policy has no heartbeat: it considers itself the only writer
and rolls back every pending write (BaseHoodieTableServiceClient).

For a write of this engine, the claim says whether its owner lives (claim_file.py). Before the claim exists, the
requested file names the process. Where this process is provably gone, nobody has to wait for a heartbeat to expire.

A write has failed when its heartbeat is older than interval times tolerable misses, or when it has no heartbeat and is
older than SILENT_MINUTES (config.concurrency_config has the defaults).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from enum import Enum
from typing import Final

from hudi_core.config.concurrency_config import FAILED_WRITES_POLICY, SILENT_MINUTES, HeartbeatConfig
from hudi_core.errors import ConflictError, CorruptFileError, StorageNotFoundError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.model.names import CLOCKS, HUDI_HEARTBEATS, ClaimFolder, epochs_of, is_released
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.replacecommit import requested_extra
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.pending_plans import pending_ingestion
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, is_live
from hudi_core.transaction.heartbeat_thread import storage_time
from hudi_core.transaction.owner import Owner, parse_own

PROCESS_KEY: Final = "airflow_hudi.process"
"""The key of the owner (Owner.to_json) in the extra metadata of a write's requested file."""
_MIN_GAP_SECONDS = 1.0
_COPYING_SECONDS = 30.0
"""A file counts as copied, not as written after the copy, within so many seconds of the files of earlier instants."""
_CREATING_SECONDS = 10.0
"""Seconds from an instant's time until its writer made the requested file; it may look for failed writes first."""
_BEHIND_SECONDS = 3.0
"""Seconds that the storage's clock may be behind the writer's."""
_ZONE_STEP_SECONDS = 900.0
"""The offsets of time zones are multiples of so many seconds."""
_ZONE_SECONDS = 14 * 3600
"""The largest offset of a time zone from UTC."""
_INSTANT = re.compile(r"^\d{1,40}\Z", re.ASCII)

log = logging.getLogger(__name__)


class FailedWrites(Enum):
    """Which process rolls back failed writes (HoodieFailedWritesCleaningPolicy)."""

    EAGER = "EAGER"
    """The next writer rolls back all pending writes: it is the only writer."""
    LAZY = "LAZY"
    """The cleaner rolls back writes whose heartbeat expired."""
    NEVER = "NEVER"
    """No process rolls them back."""


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The last signs of life of writers, by instant. Times are seconds since the epoch by the storage's clock."""

    last: Mapping[str, float]
    now: float
    tolerance_seconds: float
    silent_seconds: float = 0.0
    """The seconds without heartbeat and change until a write counts as failed; the tolerance where that is more."""
    ours: Mapping[str, bool] = field(default_factory=dict)
    """The pending writes of this engine: instant to whether its owner is dead, whatever the heartbeats say."""

    def age(self, instant: str) -> float | None:
        """Returns the seconds since the instant's last heartbeat; None when it has none."""
        last = self.last.get(instant)
        return None if last is None else max(0.0, self.now - last)

    def is_expired(self, instant: str) -> bool:
        """Returns whether the instant's writer counts as dead, also for want of a heartbeat (HoodieHeartbeatUtils)."""
        if instant in self.ours:
            return self.ours[instant]
        age = self.age(instant)
        return age is None or age > self.tolerance_seconds

    def live(self) -> frozenset[str]:
        return frozenset(instant for instant in self.last if not self.is_expired(instant))


def read_heartbeats(
    storage: Storage, beat: HeartbeatConfig, *, now: Callable[[], float] | None = None, silent_seconds: float = 0.0
) -> Heartbeats:
    """Reads the heartbeats by one listing. Ages are by the storage's clock; by `now` where nothing may be written."""
    last = {info.name: info.modified for info in storage.list_files(HUDI_HEARTBEATS) if _INSTANT.match(info.name)}
    moment = now() if now is not None else storage_time(storage, CLOCKS)
    return Heartbeats(last, moment, beat.interval_ms * beat.tolerable_misses / 1000, silent_seconds)


def refuse_live_writer(
    storage: Storage, instant: str, beat: HeartbeatConfig, *, now: Callable[[], float] | None = None
) -> None:
    """Raises ConflictError while a heartbeat shows that a writer of Hudi works on `instant`, as Hudi 1.2 does before it
    runs a planned service. Where the instant has a claim that is not released, the heartbeat is the claim owner's.
    """
    folder = ClaimFolder(instant)
    if not storage.exists(folder.hudi_heartbeat):
        return
    claims = [info.name for info in storage.list_files(folder.path)]
    if epochs_of(claims) and not is_released(claims):
        return
    if instant in read_heartbeats(storage, beat, now=now).live():
        message = f"a writer is at work on instant {instant}"
        remedy = "wait for it, or stop it and wait until its heartbeat expires"
        raise ConflictError(message, path=folder.hudi_heartbeat, remedy=remedy)


def failed_writes_policy(options: Mapping[str, str]) -> FailedWrites:
    """Returns the policy of this run. The default is LAZY, not Hudi's EAGER: this engine is never the only writer."""
    return FailedWrites(FAILED_WRITES_POLICY.read(options))


def silent_seconds(options: Mapping[str, str]) -> float:
    """Returns how many seconds a write without heartbeat is alive; 0 for a set policy (HoodieHeartbeatUtils)."""
    return 0.0 if FAILED_WRITES_POLICY.is_set(options) else 60.0 * SILENT_MINUTES.read(options)


def expired_writes(
    active: ActiveTimeline, timeline: Timeline, heartbeats: Heartbeats, policy: FailedWrites = FailedWrites.LAZY
) -> list[Instant]:
    """Returns the pending writes that failed by `policy`, newest first: the order of their rollbacks
    (getInstantsToRollback). Planned services are never among them: their plans are run again. With LAZY, a write that
    has no heartbeat and changed lately (Heartbeats.silent_seconds) is not among them. Hudi takes such a write for dead,
    but it may come before its first heartbeat, or be a running write of an EAGER writer, which has no heartbeat.
    """
    pending = list(pending_ingestion(active, timeline))[::-1]
    if policy is FailedWrites.EAGER:
        return pending
    if policy is FailedWrites.NEVER:
        return []
    changed = active.modified()
    return [instant for instant in pending if not may_be_alive(instant, active, changed, heartbeats)]


def may_be_alive(
    instant: Instant, active: ActiveTimeline, changed: Mapping[str, float], heartbeats: Heartbeats
) -> bool:
    """Returns whether a process may work on the instant: the heartbeat is fresh, or there is none and the instant
    `changed` lately, but not by a copy.
    """
    return not heartbeats.is_expired(instant.requested_time) or _is_young(instant, active, changed, heartbeats)


def eager_writers(active: ActiveTimeline, timeline: Timeline, heartbeats: Heartbeats) -> list[Instant]:
    """Returns the young pending writes without a heartbeat: their EAGER writer rolls back the writes of others."""
    changed = active.modified()
    return [
        instant for instant in pending_ingestion(active, timeline) if _is_young(instant, active, changed, heartbeats)
    ]


def warn_of_eager_writers(active: ActiveTimeline, timeline: Timeline, heartbeats: Heartbeats) -> list[Instant]:
    """Returns the writes that eager_writers finds; logs a warning with the remedy when it finds any."""
    eager = eager_writers(active, timeline, heartbeats)
    if eager:
        log.warning(
            "%s: pending writes without a heartbeat (%s). Their writer seems to consider itself the only one "
            "(%s=EAGER) and may roll back running writes of others: set it to LAZY on every writer of the table",
            active.folder,
            ", ".join(instant.requested_time for instant in eager),
            FAILED_WRITES_POLICY.name,
        )
    return eager


def _is_young(instant: Instant, active: ActiveTimeline, changed: Mapping[str, float], heartbeats: Heartbeats) -> bool:
    last = changed.get(active.path_of(instant))
    return (
        instant.requested_time not in heartbeats.last
        and instant.requested_time not in heartbeats.ours
        and last is not None
        and heartbeats.now - last <= max(heartbeats.tolerance_seconds, heartbeats.silent_seconds)
        and not came_with_a_copy(active.path(instant.requested_time, instant.pending_action, State.REQUESTED), changed)
    )


def came_with_a_copy(requested: str, changed: Mapping[str, float]) -> bool:
    """Returns whether a pending instant was copied with its table: then its writer works on another table.

    A requested file is created at its instant's time, so two requested files are as far apart as their instants,
    whatever the zone is. In a copy that did not keep modification times, all files are of one moment. A file whose own
    time fits its instant was written, not copied, even where all others were: its write began right after the copy. One
    in 70 copied files fits by chance, where the instant is of the same day. `requested` is the path of the instant's
    requested file, `changed` the result of ActiveTimeline.modified. The first file that was not copied ends the search.
    """
    made, instant, is_copied = changed.get(requested), _instant_of(requested), False
    if made is None or _is_made_at(instant, made):
        return False
    for path, modified in changed.items():
        if not path.endswith(".requested") or (other := _instant_of(path)) >= instant:
            continue
        due = _seconds_between(instant, other)
        if due < _MIN_GAP_SECONDS:
            continue
        if abs(made - modified) > min(due / 10, _COPYING_SECONDS):
            return False
        is_copied = True
    return is_copied


def _is_made_at(instant: str, moment: float) -> bool:
    """Returns whether a file modified at `moment` was created at the instant's time, in any time zone."""
    try:
        since = moment - parse_instant(instant, "UTC").timestamp()
    except TimelineError:
        return False
    after = since % _ZONE_STEP_SECONDS
    fits = after <= _CREATING_SECONDS or after >= _ZONE_STEP_SECONDS - _BEHIND_SECONDS
    return fits and abs(since) <= _ZONE_SECONDS + _CREATING_SECONDS


def _instant_of(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _seconds_between(one: str, other: str) -> float:
    """Returns the seconds between two instants; 0 where one of them is no date."""
    try:
        return abs((parse_instant(one, "UTC") - parse_instant(other, "UTC")).total_seconds())
    except TimelineError:
        return 0.0


def process_of(owner: Owner) -> dict[str, str]:
    """Returns the extra metadata that names the owner of a requested write."""
    return {PROCESS_KEY: json.dumps(owner.to_json())}


def with_own_writes(heartbeats: Heartbeats, storage: Storage, active: ActiveTimeline, timeline: Timeline) -> Heartbeats:
    """Returns the heartbeats with `ours`: for each pending write of this engine, whether its owner is dead."""
    dead: dict[str, bool] = {}
    for instant in timeline.pending().of_actions(*COMMIT_ACTIONS):
        try:
            owner = _requested_by(active, instant)
        except (CorruptFileError, StorageNotFoundError):
            continue  # no plan of ours, or gone since the listing
        if owner is not None:
            with suppress(ConflictError):  # the instant has ended since the listing
                dead[instant.requested_time] = _is_dead(heartbeats, storage, active, instant, owner)
    return replace(heartbeats, ours=dead)


def _requested_by(active: ActiveTimeline, instant: Instant) -> Owner | None:
    path = active.path(instant.requested_time, instant.action, State.REQUESTED)
    data = active.read_requested(instant.requested_time, instant.action)
    process = requested_extra(data, instant.action, path=path).get(PROCESS_KEY)
    return None if process is None else Owner.from_json(parse_own(process.encode(), "the owner", path=path), path=path)


def _is_dead(
    heartbeats: Heartbeats, storage: Storage, active: ActiveTimeline, instant: Instant, requested_by: Owner
) -> bool:
    """Returns whether the owner of a write is dead, by its claim. Without a claim, the owner counts as dead when
    its process is provably dead, or when it has not claimed the instant in the time after which a heartbeat expires.
    """
    try:
        claimed = current_claim(storage, instant.requested_time)
    except CorruptFileError:  # its own run or `rollback --instant` names the damaged file: here nothing is known
        return False
    if claimed is not None:
        return not is_live(storage, instant.requested_time, claimed.epoch, now=lambda: heartbeats.now)
    if requested_by.is_provably_dead():
        return True
    requested = active.modified().get(active.path(instant.requested_time, instant.action, State.REQUESTED))
    return requested is not None and heartbeats.now - requested > heartbeats.tolerance_seconds
