"""What the doctor's rules judge, observations, and what they say: findings, and the options that writers should have.

Ages and skews are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

from hudi_core.errors import FormatError
from hudi_core.timeline.instant import Instant

Severity = Literal["error", "warning", "info"]
"""error: rows are wrong or will be lost; warning: something is blocked or may fail; info: no action is needed now."""

KEPT: Final = 100
"""How many differences of one sort are kept; all are counted."""
_SHOWN: Final = 5

T = TypeVar("T")


def duration(seconds: float) -> str:
    """An age for people: seconds, minutes, hours or days, whichever is not too small."""
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def named_files(paths: Sequence[str], count: int, kind: str = "file") -> str:
    """`count` files, or others of a `kind`, for people, the first of `paths` by name."""
    more = "" if count <= _SHOWN else f" and {count - _SHOWN} more"
    return f"{count} {kind}{'' if count == 1 else 's'} ({', '.join(paths[:_SHOWN])}{more})"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its rule, what was seen, what to do. `age_seconds` is that of the instant or lock."""

    rule: str
    severity: Severity
    what: str
    fix: str
    instant: str | None = None
    path: str | None = None
    age_seconds: float | None = None
    owner: str | None = None
    blocks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        age = None if self.age_seconds is None else round(self.age_seconds, 3)
        return asdict(self) | {"blocks": list(self.blocks), "age_seconds": age}


@dataclass(frozen=True, slots=True)
class WriterOption:
    """An option that every writer should have: `value` to set, `now` as this run or the table's properties have it."""

    name: str
    value: str
    now: str | None
    why: str


@dataclass(frozen=True, slots=True)
class PendingObservations:
    """A pending instant. `kind` as in repair.pending_plan; `age` is the younger of its file and its instant, None
    without a file.

    `owner` describes the owner of its claim; `alive`: its owner or its writer may be at work. `problem` says why its
    plan is unreadable.
    """

    instant: Instant
    kind: str
    age: float | None
    owner: str | None = None
    alive: bool = False
    blocks: tuple[str, ...] = ()
    problem: str | None = None
    runs_here: bool = True
    """Whether this release runs its service on this table."""
    restores_to: str = ""
    """As PendingPlan has it."""


@dataclass(frozen=True, slots=True)
class ClockObservations:
    """Clocks and zones: `zone` of the timeline in this run, `recorded` in hoodie.properties, `here` what LOCAL means.

    `offsets`: how much later the latest instants are than the creation of their first file, read in `zone`.
    `storage_ahead` and `newest_ahead`: how far the newest file and instant are ahead of this process's clock; None when
    there is none.
    """

    zone: str
    recorded: str
    here: str
    tolerated: float
    offsets: tuple[float, ...] = ()
    storage_ahead: float | None = None
    newest_ahead: float | None = None
    newest: str | None = None


@dataclass(frozen=True, slots=True)
class LockObservations:
    """The table's lock. `holder` in words, None when free; `left_behind`: it is provably gone. `problem`: no check."""

    provider: str | None
    name: str
    holder: str | None = None
    age: float | None = None
    left_behind: bool = False
    how_to_break: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StoreObservations:
    """What the storage offers. Only a race shows whether it keeps the guarantees (storage.probe)."""

    scheme: str
    exclusive_create: bool
    conditional_write: bool


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution needed at `side`, and the version here or None; one that is optional makes work faster."""

    name: str
    side: Literal["driver", "driver and executors"]
    why: str
    install: str
    version: str | None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class ExecutorObservations:
    """The set-ups of Spark's executors, one per different set-up (protocol.RemoteEngine); `problem`: no check."""

    setups: tuple[Mapping[str, str | None], ...] = ()
    problem: str | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The first instant of a timeline of layout 2, and how many commits of the archive are later, up to which."""

    first: Instant
    count: int
    latest: str


@dataclass(frozen=True, slots=True)
class OrphanObservations:
    """Files of instants that never completed, visible to readers or hidden; `looked`: files were listed."""

    looked: bool = False
    visible: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrongSize:
    """A file whose size the metadata table has wrong: bytes as `listed` and as they are `there`."""

    path: str
    listed: int
    there: int


@dataclass(slots=True)
class Counted(Generic[T]):
    """The first KEPT items, and how many there are."""

    first: list[T] = field(default_factory=list)
    count: int = 0

    def add(self, item: T) -> None:
        """One more."""
        self.count += 1
        if self.count <= KEPT:
            self.first.append(item)


@dataclass(frozen=True, slots=True)
class ListingObservations:
    """Where the metadata table's list of files and the storage differ, by path.

    `missing` are listed and not there; `hidden` are listed, and there, where no listing of the storage comes;
    `unlisted` are there, of completed commits, and not listed; `wrong_size` are both, and of another size. `problem`:
    the list cannot be read.
    """

    missing: Counted[str] = field(default_factory=Counted)
    unlisted: Counted[str] = field(default_factory=Counted)
    wrong_size: Counted[WrongSize] = field(default_factory=Counted)
    problem: str | None = None
    hidden: Counted[str] = field(default_factory=Counted)


@dataclass(frozen=True, slots=True)
class DamagedLog:
    """A corrupt block of a log file that queries skip; or, where it is not `is_readable`, a file that they fail on.
    `is_torn`: the block is of no completed commit (filegroup.read.torn_tails).
    """

    path: str
    what: str
    is_readable: bool
    is_torn: bool = False


@dataclass(frozen=True, slots=True)
class LogObservations:
    """The damage in the log files that a snapshot query reads."""

    damaged: Counted[DamagedLog] = field(default_factory=Counted)
    torn: Counted[DamagedLog] = field(default_factory=Counted)


@dataclass(frozen=True, slots=True)
class IndexObservations:
    """`narrow` are data partitions whose recorded ranges lack values, by index, `incomplete` secondary indexes that
    lack rows of a commit on the timeline, `unproven` those of which this is unknown. `doubtful_keys`: the record index
    may lack keys. `unrecorded` are completed writes that the metadata table lacks, `empty` listed indexes without
    files, `damaged` those with a damaged one. `problem`: no check.
    """

    unrecorded: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    damaged: Mapping[str, FormatError] = field(default_factory=dict)
    narrow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    incomplete: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    doubtful_keys: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class CodecCost:
    """Bytes of a sample of rows in one codec, and seconds of CPU to write it and to read it back."""

    stored: int
    writing: float
    reading: float


@dataclass(frozen=True, slots=True)
class CompressionObservations:
    """The codec of new base files, by the options or else that of the newest ones; None where neither says.

    `rows` of `files` took the costs `now`, in that codec, and `zstd`; None where nothing was measured. `library` is
    what made gzip here.
    """

    codec: str | None = None
    library: str | None = None
    files: int = 0
    rows: int = 0
    now: CodecCost | None = None
    zstd: CodecCost | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """Everything that the rules judge. `options` are this run's over the table's; `eager` writes have no heartbeat."""

    uri: str
    options: Mapping[str, str]
    stalled_after: float
    clock: ClockObservations
    lock: LockObservations
    store: StoreObservations
    wheels: tuple[Wheel, ...] = ()
    version: int = 0
    """The table's version."""
    metadata_partitions: frozenset[str] = frozenset()
    pending: tuple[PendingObservations, ...] = ()
    eager: tuple[str, ...] = ()
    other_writers: tuple[str, ...] = ()
    """Signs of another live writer, in words (transaction.locks.unlocked_writers)."""
    strange_names: tuple[str, ...] = ()
    """Paths in the timeline's folder that look like a timeline file's and are none."""
    overtaken: Overtaken | None = None
    latest_indexing: str | None = None
    """The latest completed action, where that is an indexing."""
    metadata_drop_unfinished: bool = False
    orphans: OrphanObservations = OrphanObservations()
    listings: ListingObservations = field(default_factory=ListingObservations)
    logs: LogObservations = field(default_factory=LogObservations)
    copied: Counted[tuple[str, str]] = field(default_factory=Counted)
    """Base files whose rows name a file of another file group, with that name."""
    mislabelled: Counted[tuple[str, str]] = field(default_factory=Counted)
    shared_buckets: Counted[str] = field(default_factory=Counted)
    cut: Counted[tuple[str, str]] = field(default_factory=Counted)
    """Base files that lost bytes, each with what is wrong."""
    indexes: IndexObservations = IndexObservations()
    compression: CompressionObservations = CompressionObservations()
    executors: ExecutorObservations | None = None
    """None where the doctor runs without executors."""
