"""Every error that the engine raises on purpose, with the exit code of hudictl where it is not 1. The exit code of a
result without an error is 0, also of a doctor with findings (request/results.py).

    HudiError
    ├── ConfigError (2)             an option or a table property is missing, unknown or invalid
    │   └── MetadataUnavailableError    the table has no metadata table that could be read
    ├── StorageError                the storage failed or refused
    │   ├── StorageNotFoundError (2)    the object is not there (the only error that means "absent")
    │   ├── CredentialsMissingError (2) this process has no credentials for the storage
    │   ├── StorageExistsError      an exclusive create found the object already there
    │   └── StorageConflictError    a conditional write found another version there, or nothing
    ├── FormatError (2)             bytes or names that are not what the format says
    │   ├── CorruptFileError        damaged: truncated, failing its checksum, or out of its own bounds
    │   └── UnsupportedError        valid Hudi that this engine refuses by name
    │       ├── UnsupportedVersionError
    │       ├── ZoneUnknownError    what depends on the time zone of Spark's sessions, which is not given
    │       └── SizeLimitError      larger than the limit of its kind, which an option raises
    ├── TimelineError               a state change that the timeline does not allow
    │   └── OrphanFilesError        files of instants that never completed are in the way
    ├── ConflictError (3)           another process owns the work; safe to retry
    │   ├── LockError               a lock was not obtained in time
    │   └── BuildRolledBackError    another writer rolled the build of an index back
    └── ExecutionError              the work itself failed

Each error has the file that it is about and the remedy as fields. It can be pickled, so that it crosses a Spark task
boundary whole. Classes whose remedy does not depend on the raising code have a default one, `usual_remedy`. Passwords
in addresses, and secrets in their queries and parameters, are masked, because libraries put whole addresses into their
messages. Control characters are escaped, and long texts shortened: names from a table get into messages, and these into
terminals and logs. Reminder says when a process that waits logs that. airflow_hudi/task_fate.py says what a code means
for an Airflow task.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E", bound="HudiError")

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_RETRY = 3

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters of terminals, and those that reorder or break a line; all but the tab and the line feed."""
LONGEST = 8000
"""How many characters a message may have, and a path in it."""
_USER_INFO = re.compile(r"://[^/@\s:\[]*:(?!\d{1,5}(?:/|$))[^@\s]*@?")
"""A user and a password in an address, where it ends with `@`. Keys of AWS may hold slashes. `host:port/folder@name`
has neither. Text without `@` is matched, too: else the time grows with the square of the text's length.
"""
_SIGNED = re.compile(
    # A lookahead is not tried again once it matched, so that a name of many such words takes the time of one.
    r"([?&;](?=([\w.%-]*?(?:sig|key|token|secret|passw|credential|auth)))\2[\w.%-]*=)[^&#\s'\"<>)]+",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Returns the text with `***` for what is secret in the addresses in it. Takes time in proportion to its length."""
    if "://" not in text:
        return text
    return _SIGNED.sub(r"\1***", without_user_info(text))


def without_user_info(text: str) -> str:
    """Returns the text with `***` for users and passwords in the addresses in it; the text itself where it has none."""
    return _USER_INFO.sub(lambda found: "://***@" if found[0].endswith("@") else found[0], text)


def without_controls(text: str) -> str:
    """Returns the text with control characters as `\\x1b`. Idempotent."""
    return CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Escapes a text like without_controls, and tabs and line feeds, too: a path may have them. Idempotent."""
    return without_controls(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str) -> str:
    """Cuts the middle of a text of more than LONGEST characters: names may have megabytes. Idempotent."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 1000]} [{len(text) - LONGEST + 500} characters] {text[-500:]}"


def truncated(text: str, most: int) -> str:
    """Returns the text, or its first `most` characters and an ellipsis where it is longer."""
    return text if len(text) <= most else f"{text[:most]}…"


class LogFormatter(logging.Formatter):
    """Makes log lines without control characters and secrets. Indents further lines of a message."""

    def format(self, record: logging.LogRecord) -> str:
        return without_controls(masked(super().format(record))).replace("\n", "\n  ")


class Reminder:
    """Says when a wait is logged: once it has lasted `quiet_for`, then after each `every`, in seconds of `clock`.

    The wait starts when the reminder is made.
    """

    def __init__(self, clock: Callable[[], float], *, every: float = 30.0, quiet_for: float = 0.0) -> None:
        self._clock = clock
        self._every = every
        self._next = clock() + quiet_for

    def is_due(self) -> bool:
        """Whether to log now. When it is True, the next time is `every` away."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._every
        return True


class HudiError(Exception):
    """Root of the tree. `path` is the file that the error is about, `remedy` what the reader can do."""

    exit_code = EXIT_FAILED
    usual_remedy: str | None = None

    def __init__(self, message: str, *, path: str | None = None, remedy: str | None = None) -> None:
        message = shortened(without_controls(masked(message)))
        super().__init__(message)
        self.message = message
        self.path = None if path is None else shortened(one_line(masked(path)))
        self.remedy = remedy or self.usual_remedy

    def __str__(self) -> str:
        text = self.message
        if self.path is not None and self.path not in text:
            text = f"{self.path}: {text}"
        if self.remedy:
            text = f"{text} ({self.remedy})"
        return text

    def found_late(self: E, outcome: str) -> E:
        """Returns the error as found after a write: exit code 1, and a message with the `outcome` of the write."""
        late = type(self)(
            f"{self.message}; found after the run had begun: {outcome}", path=self.path, remedy=self.remedy
        )
        late.exit_code = EXIT_FAILED
        return late

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.path, self.remedy)


def _rebuild(kind: type[HudiError], message: str, path: str | None, remedy: str | None) -> HudiError:
    return kind(message, path=path, remedy=remedy)


class ConfigError(HudiError):
    """An option or a table property is missing, unknown or invalid."""

    exit_code = EXIT_BAD_INPUT


class MetadataUnavailableError(ConfigError):
    """The table has no metadata table that could be read; its files can be listed in storage instead."""

    usual_remedy = "build it with `hudictl metadata create TABLE`; queries can do without it: `--metadata off`"


class StorageError(HudiError):
    """The storage failed for another reason than absence or presence."""


class StorageNotFoundError(StorageError):
    """The object is not there. Only this error may be read as "absent"."""

    exit_code = EXIT_BAD_INPUT
    usual_remedy = "if a cleaner or an archiver removed it meanwhile, run again; else restore the file from a copy"


class CredentialsMissingError(StorageError):
    """This process has no credentials for the storage. The storage was not asked; a retry has none either."""

    exit_code = EXIT_BAD_INPUT
    usual_remedy = (
        "give them by its environment or a role, or by a storage options file: --storage-options-file of hudictl, "
        "env_vars or storage_options_file of an operator, whose Spark job has credentials of its own"
    )


class StorageExistsError(StorageError):
    """An exclusive create found the object already there."""


class StorageConflictError(StorageError):
    """A conditional write found another version of the object there, or no object."""


class FormatError(HudiError):
    """Bytes or names that are not what the format says."""

    exit_code = EXIT_BAD_INPUT
    usual_remedy = "the file is not as Hudi writes it; find out what wrote it, or restore it from a copy"


class CorruptFileError(FormatError):
    """A file is truncated, fails its checksum, or points outside itself."""

    usual_remedy = "the file is damaged or was written in part; restore it from a copy"


class UnsupportedError(FormatError):
    """Valid Hudi that this engine refuses by name."""

    usual_remedy = "use Hudi itself for this, or a release that handles it"


class SizeLimitError(UnsupportedError):
    """A file, or the size that it declares of a part, is larger than the limit of its kind (model.size_limits)."""


class UnsupportedVersionError(UnsupportedError):
    """A table version or timeline layout that this engine does not handle."""


class ZoneUnknownError(UnsupportedError):
    """The result depends on the time zone of Spark's sessions, which no option names."""


class TimelineError(HudiError):
    """A state change that the timeline does not allow."""


class OrphanFilesError(TimelineError):
    """Files of instants that never completed, which a change of the timeline would make visible.

    The message names them.
    """


class ConflictError(HudiError):
    """Another process owns the work or changed what it was planned on; safe to retry."""

    exit_code = EXIT_RETRY


class BuildRolledBackError(ConflictError):
    """Another process rolled a build back as a failed write. The build is not used, and can be done again."""


class LockError(ConflictError):
    """A lock was not obtained in time."""


class ExecutionError(HudiError):
    """The work itself failed."""


def is_transient(error: HudiError) -> bool:
    """Whether another attempt may succeed: only when the storage failed, not by absence, presence or credentials."""
    lasting = StorageNotFoundError | StorageExistsError | CredentialsMissingError
    return isinstance(error, StorageError) and not isinstance(error, lasting)
