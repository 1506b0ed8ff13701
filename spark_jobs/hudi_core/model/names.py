"""Names of file groups, base files and log files, of the `_hoodie_*` columns, of columns in any case, and of the files
that claim an instant. timeline/naming.py has the names of timeline files, codec/columns.py dotted names of columns.

Files are `<fileId>_<writeToken>_<instant>.<ext>` and `.<fileId>_<instant>.log.<N>_<token>` (FSUtils). A name from a
table is untrusted: it must parse, and hold no path separator, before it is used as part of a path. Columns are found as
by Spark: as they are written, else in any case. A writer of Hudi may change the case, and older files keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from hudi_core.errors import FormatError, UnsupportedError
from hudi_core.frozen import dataclass

COMMIT_TIME: Final = "_hoodie_commit_time"
COMMIT_SEQNO: Final = "_hoodie_commit_seqno"
RECORD_KEY: Final = "_hoodie_record_key"
PARTITION_PATH: Final = "_hoodie_partition_path"
FILE_NAME: Final = "_hoodie_file_name"
OPERATION: Final = "_hoodie_operation"
IS_DELETED: Final = "_hoodie_is_deleted"
"""A user column that flags a row as deleted; not one of the meta columns."""

META_FIELDS: Final = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The columns that Hudi puts before a table's own (HoodieRecord.HOODIE_META_COLUMNS)."""

_TOKEN = r"(?P<token>\d{1,18}-\d{1,18}-\d{1,18})"
BASE_NAME: Final = re.compile(
    rf"^(?P<file_id>[^/_]+)_{_TOKEN}_(?P<instant>\d+)\.(?P<ext>parquet|orc|hfile)\Z", re.ASCII
)
LOG_NAME: Final = re.compile(
    rf"^\.(?P<file_id>[^/_]+)_(?P<instant>\d*)\.log\.(?P<version>\d{{1,9}})(?:_{_TOKEN}(?P<cdc>\.cdc)?)?\Z", re.ASCII
)


_EXTERNAL: Final = "_hudiext"
"""The end of `<name>_<instant>_hudiext` and `<name>_<instant>_fg%3D<folder>_hudiext`. Commits and the metadata table
name a file so that lies in storage as `<name>` (ExternalFilePathUtil).
"""


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """A file group: the partition path (`""` when not partitioned) and the file id, `<uuid>-<n>`."""

    partition: str
    file_id: str


@dataclass(frozen=True, slots=True, order=True)
class WriteToken:
    """The token `<taskPartitionId>-<stageId>-<taskAttemptId>` of one attempt (FSUtils.makeWriteToken)."""

    partition_id: int
    stage_id: int
    attempt_id: int

    def __str__(self) -> str:
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"


def _token(checked: str) -> WriteToken:
    return WriteToken(*map(int, checked.split("-")))


ROLLBACK_TOKEN: Final = WriteToken(1, 0, 1)
"""The token of rollback command blocks (HoodieLogFormat.rolloverLogWriteToken)."""


@dataclass(frozen=True, slots=True)
class BaseFileName:
    file_id: str
    token: WriteToken
    instant: str
    extension: str

    def __str__(self) -> str:
        return f"{self.file_id}_{self.token}_{self.instant}.{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The name of a log file. `instant` is the slice's base instant in layout 1, the deltacommit's own in layout 2."""

    file_id: str
    instant: str
    version: int
    token: WriteToken | None
    cdc: bool = False

    def __str__(self) -> str:
        tail = "" if self.token is None else f"_{self.token}"
        return f".{self.file_id}_{self.instant}.log.{self.version}{tail}{'.cdc' if self.cdc else ''}"

    @property
    def scan_order(self) -> tuple[str, int, str, bool]:
        """The order of HoodieLogFile.LogFileComparator: instant, version, write token (absent first), suffix."""
        return self.instant, self.version, "" if self.token is None else str(self.token), self.cdc


def refuse_external(path: str) -> None:
    """Raises UnsupportedError for a file of another writer, such as Apache XTable: its rows would be lost."""
    if path.endswith(_EXTERNAL):
        message = "the table names a file that was made not by a writer of Hudi but by another, such as Apache XTable"
        raise UnsupportedError(message, path=path, remedy="read it with Hudi, and write it with the tool that made it")


def parse_base_file(name: str) -> BaseFileName:
    match = BASE_NAME.match(name)
    if match is None:
        refuse_external(name)
        raise FormatError(f"not a base file name: {name!r}")
    return BaseFileName(match["file_id"], _token(match["token"]), match["instant"], match["ext"])


def group_and_instant(name: str) -> tuple[str, str] | None:
    """Returns the file id and instant of a base file's name; None for other files. Raises as refuse_external."""
    match = BASE_NAME.match(name)
    if match is None:
        refuse_external(name)
        return None
    return match["file_id"], match["instant"]


def parse_log_file(name: str) -> LogFileName:
    match = LOG_NAME.match(name)
    if match is None:
        raise FormatError(f"not a log file name: {name!r}")
    token = None if match["token"] is None else _token(match["token"])
    return LogFileName(match["file_id"], match["instant"], int(match["version"]), token, match["cdc"] is not None)


def parse_data_file(name: str) -> BaseFileName | LogFileName | None:
    """Returns the parts of a base or log file name; None for other files. Raises as refuse_external."""
    try:
        return parse_log_file(name) if name.startswith(".") else parse_base_file(name)
    except UnsupportedError:
        raise
    except FormatError:
        return None


def alike(names: Iterable[str], name: str) -> list[str]:
    """Returns those of `names` that `name` is the name of: the same one, else all that differ from it only in case."""
    same = [known for known in names if known == name or known.lower() == name.lower()]
    return [name] if name in same else same


def places(names: Sequence[str], requested: Iterable[str], *, path: str) -> list[int]:
    """Returns where each of `requested` is among `names`, else -1. Raises UnsupportedError where two differ by case."""
    exact = {name: at for at, name in enumerate(names)}
    lowered = [name.lower() for name in names]
    known = dict(zip(lowered, range(len(names)), strict=True))
    positions = [exact.get(name, known.get(name.lower(), -1)) for name in requested]
    if len(known) < len(exact):
        for at in positions:
            if at >= 0 and lowered.count(lowered[at]) > 1:
                check_distinct([name for name in names if name.lower() == lowered[at]], path=path)
    return positions


def spelled(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Returns each of `names` as `known` writes it. A name without one such form stays as it is."""
    exact, lowered = frozenset(known), dict[str, str]()
    for name in exact:
        lowered[name.lower()] = "" if name.lower() in lowered else name
    return [name if name in exact else lowered.get(name.lower()) or name for name in names]


def check_distinct(names: Iterable[str], *, path: str) -> None:
    """Raises UnsupportedError naming `path` and two of `names` that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedError(
                f"the columns {other!r} and {name!r} differ in upper and lower case alone",
                path=path,
                remedy="rename one of them with Spark and spark.sql.caseSensitive=true: without that Spark does not "
                "read such a table either",
            )


CLAIMS: Final = ".hoodie/.airflow_hudi/claims"
HUDI_HEARTBEATS: Final = ".hoodie/.heartbeat"
"""Folder of the heartbeats of Hudi's writers, one file an instant (HoodieHeartbeatClient). Claims renew them, too."""
CLOCKS: Final = ".hoodie/.airflow_hudi/clock"
"""Folder of files that tell the time of the storage. It is no folder of claims: these go with their instant."""
_EPOCH = r"(\d{6}|[1-9]\d{6,15})"
_CLAIM = re.compile(rf"{_EPOCH}\.json\Z", re.ASCII)
_NUMBER = re.compile(rf"{_EPOCH}\.(?:json|decision)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClaimFolder:
    """The files below `.hoodie/.airflow_hudi/claims/<instant>/`. `<epoch>` has six digits or more:
    - `<epoch>.json`, created exclusively: its owner. The highest epoch owns the instant.
    - `<epoch>.heartbeat`, rewritten at the owner's interval: the owner is alive. Its modification time counts.
    - `<epoch>.released`: the owner has released the instant, whatever the run did.
    - `<epoch>.decision`: what the owner is about to complete, or that its successor closed the epoch.
    - `dropped.plan`: the plan of an instant that is being unscheduled.
    """

    instant: str

    @property
    def path(self) -> str:
        return f"{CLAIMS}/{self.instant}"

    @property
    def hudi_heartbeat(self) -> str:
        return f"{HUDI_HEARTBEATS}/{self.instant}"

    @property
    def dropped_plan(self) -> str:
        return f"{self.path}/dropped.plan"

    def claim(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.json"

    def heartbeat(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.heartbeat"

    def released(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.released"

    def decision(self, epoch: int) -> str:
        return f"{self.path}/{epoch:06d}.decision"


def epochs_of(names: Iterable[str]) -> list[int]:
    """Returns the epochs of the claims among the names of a claim folder's files, ascending."""
    return sorted(int(match[1]) for match in map(_CLAIM.match, names) if match is not None)


def last_number(names: Iterable[str]) -> int:
    """Returns the highest number of a claim or decision, else 0. A cut removal leaves a decision without its claim."""
    return max((int(match[1]) for match in map(_NUMBER.match, names) if match is not None), default=0)


def is_released(names: Iterable[str]) -> bool:
    """Whether the last owner released the instant, by the names of a claim folder's files. False without a claim."""
    names = set(names)
    epochs = epochs_of(names)
    return bool(epochs) and f"{epochs[-1]:06d}.released" in names
