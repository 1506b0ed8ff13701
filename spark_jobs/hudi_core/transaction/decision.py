"""The recorded decision of an owner to complete an instant, so that the instant completes once (docs/decisions/0009).

`<epoch>.decision` beside the claim of that epoch is created exclusively, by one of two: by the owner, with the very
file that it is about to put on the timeline, or by its successor, to close the epoch. Which of them is first decides:
- the successor: the old owner can never complete, however late it wakes up, and what it wrote may be rolled back;
- the owner: the successor puts the same file under the same name, so that it does not matter which of the two requests
  arrives, nor whether one that timed out arrives late. A check before the put could not do this: a process may be
  stopped between the two. It is what makes layout 2 as safe as layout 1, where two owners that draw two completion
  times would both create a completed file.

A decision that would lose rows by now is withdrawn instead (docs/decisions/0023). Then a late request would complete
what was rolled back, so it is not withdrawn before the owner has been silent for longer than a request can take
(storage.base.LATE_SECONDS).

It is recorded after the metadata table's deltacommit of the instant: a death between the two leaves a deltacommit that
no reader counts and that is rolled back (commit.py). commit.Completer.finish_decided carries a decision out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_core.errors import ConflictError, StorageExistsError, StorageNotFoundError
from hudi_core.model.claim_names import ClaimFolder
from hudi_core.storage.base import Storage
from hudi_core.transaction.owner import damaged, parse_own

_VERSION = 1
_CLOSED = json.dumps({"version": _VERSION, "closed": True}).encode()


@dataclass(frozen=True, slots=True)
class Decision:
    """The completed file of an instant: its pending `action` (`compaction`); no `completion_time` in layout 1."""

    action: str
    completion_time: str | None
    content: bytes
    known: frozenset[str] = frozenset()
    """The commits that were completed on the timeline then, by requested time."""


def decide(storage: Storage, folder: ClaimFolder, epoch: int, decision: Decision) -> None:
    """Records the decision; raises ConflictError when a successor closed the epoch or decided otherwise."""
    data = _encode(decision)
    path = folder.decision(epoch)
    try:
        storage.create_exclusive(path, data)
    except StorageExistsError as error:
        if _read(storage, path) != data:  # the same bytes: our own request arrived although its answer was lost
            raise ConflictError(
                "a new owner closed this run of the instant", path=path, remedy="leave the instant to its new owner"
            ) from error


def close(storage: Storage, folder: ClaimFolder, epoch: int) -> Decision | None:
    """Keeps the owner of `epoch` from deciding any more; its decision, if that was first. Raises CorruptFileError."""
    path = folder.decision(epoch)
    try:
        storage.create_exclusive(path, _CLOSED)
    except StorageExistsError:
        return _decode(_read(storage, path), path)
    return None


def find_decision(storage: Storage, folder: ClaimFolder, epoch: int) -> Decision | None:
    """The decision on record of an epoch; None when it is closed, or still open. Raises CorruptFileError."""
    path = folder.decision(epoch)
    return _decode(_read(storage, path), path) if storage.exists(path) else None


def withdraw(storage: Storage, folder: ClaimFolder, epoch: int) -> None:
    """Turns a decision that may not be carried out any more, and whose put is over, into a closed epoch."""
    storage.write(folder.decision(epoch), _CLOSED)


def _read(storage: Storage, path: str) -> bytes:
    try:
        return storage.read(path)
    except StorageNotFoundError as error:
        raise ConflictError(
            "the claims of the instant were removed meanwhile", path=path, remedy="run again"
        ) from error


def _encode(decision: Decision) -> bytes:
    """A line of JSON with action, completion time and the commits known, then the bytes of the completed file."""
    head = {
        "version": _VERSION,
        "action": decision.action,
        "completion_time": decision.completion_time,
        "known": sorted(decision.known),
    }
    return json.dumps(head).encode() + b"\n" + decision.content


def _decode(data: bytes, path: str) -> Decision | None:
    text, _, content = data.partition(b"\n")
    head = parse_own(text, "the decision", path=path)
    if head.get("version") != _VERSION:
        raise damaged("the decision has another version", path)
    if head.get("closed") is True:
        return None
    action, completion, known = head.get("action"), head.get("completion_time"), head.get("known")
    if not isinstance(action, str) or not (completion is None or isinstance(completion, str)) or not content:
        raise damaged("the decision is not one", path)
    if not isinstance(known, list) or not all(isinstance(time, str) for time in known):
        raise damaged("the commits of the decision are none", path)
    return Decision(action, completion, content, frozenset(known))
