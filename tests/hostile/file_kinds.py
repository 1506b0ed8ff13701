"""The kinds of files of a table, and after which mutations of each a query must answer as before or fail."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.hostile.change import Nature

METADATA = ".hoodie/metadata/"
_TIMELINE = re.compile(
    r"^\.hoodie/(?:timeline/)?\d+(?:_\d+)?(?:\.(?P<action>[a-z]+))?(?:\.(?P<state>requested|inflight))?$"
)
_FIRST = (
    (re.compile(r"^\.hoodie/hoodie\.properties(\.backup)?$"), "properties"),
    (re.compile(r"^\.hoodie/archived/"), "archive log"),
    (re.compile(r"^\.hoodie/timeline/history/.*\.parquet$"), "history file"),
    (re.compile(r"^\.hoodie/timeline/history/"), "history manifest"),
    (re.compile(r"^\.hoodie/\.index_defs/"), "index definitions"),
    (re.compile(r"^\.hoodie/\.schema/"), "schema history"),
    (re.compile(r"^\.hoodie/\.temp/"), "marker"),
    (re.compile(r"^\.hoodie/\.bucket_index/"), "bucket index"),
    (re.compile(r"^\.hoodie/\.airflow_hudi/claims/"), "claim"),
    (re.compile(r"^\.hoodie/\.heartbeat/"), "heartbeat"),
    (re.compile(r"^\.hoodie/(\.locks/|lock)"), "lock"),
    (re.compile(r"(^|/)\.hoodie_partition_metadata"), "partition metadata"),
    (re.compile(r"^\.hoodie/"), "other control file"),
    (re.compile(r"\.cdc$"), "cdc log"),
    (re.compile(r"\.log\.\d+_"), "log file"),
    (re.compile(r"\.(parquet|orc|hfile)$"), "base file"),
)


def kind_of(path: str) -> str:
    """The kind of a file by its path below the base path."""
    if path.startswith(METADATA):
        inner = kind_of(path.removeprefix(METADATA))
        data = inner in ("log file", "base file", "properties", "partition metadata")
        return f"metadata {inner if data else 'timeline'}"
    match = _TIMELINE.match(path)
    if match:
        action, state = match["action"] or "commit", match["state"]
        if match["action"] in ("requested", "inflight"):
            action, state = "commit", match["action"]
        return f"{action} plan" if state == "requested" else f"{action} {state}" if state else f"completed {action}"
    return next((kind for pattern, kind in _FIRST if pattern.search(path)), "other file")


BOTH, OFF, NEVER = frozenset({"on", "off"}), frozenset({"off"}), frozenset[str]()
"""With the metadata table on or off."""


@dataclass(frozen=True)
class Kept:
    """In which modes a query that succeeds has to give the same rows as before a mutation of that nature."""

    damage: frozenset[str] = BOTH
    edit: frozenset[str] = BOTH

    def modes(self, nature: Nature) -> frozenset[str]:
        """Those of one nature."""
        return self.damage if nature is Nature.DAMAGE else self.edit


KEPT = {
    "properties": Kept(NEVER, NEVER),
    "completed commit": Kept(BOTH, NEVER),
    "completed deltacommit": Kept(BOTH, NEVER),
    "completed replacecommit": Kept(BOTH, NEVER),
    # In table version 6 a pending compaction says to which slice log files belong; queries of Hudi take it from there.
    "compaction plan": Kept(BOTH, NEVER),
    "logcompaction plan": Kept(BOTH, NEVER),
    "schema history": Kept(BOTH, NEVER),
    "base file": Kept(BOTH, NEVER),
    "log file": Kept(BOTH, NEVER),
    "cdc log": Kept(BOTH, NEVER),
    "partition metadata": Kept(BOTH, NEVER),
    "index definitions": Kept(BOTH, OFF),
    # A file of the archive that is gone takes its commits out of ranges; Hudi cannot tell either.
    "archive log": Kept(BOTH, NEVER),
    "history file": Kept(BOTH, NEVER),
    "history manifest": Kept(BOTH, NEVER),
    "metadata properties": Kept(OFF, OFF),
    "metadata timeline": Kept(BOTH, OFF),
    "metadata log file": Kept(BOTH, OFF),
    "metadata base file": Kept(BOTH, OFF),
    "metadata partition metadata": Kept(BOTH, OFF),
}
"""What is not named here holds nothing that a snapshot query answers with: plans, markers, claims, the archive. What an
edited file of the metadata table says is believed, as by Hudi, when the metadata table is on.
"""


def kept_of(kind: str) -> Kept:
    """The rule of a kind."""
    return KEPT.get(kind, Kept())


_WEIGHTS = (
    (re.compile(r"inflight|^(delta)?commit plan|marker|heartbeat"), 1),
    (re.compile(r"^(base|log) file|^metadata (log|base)|^(compaction|clean|rollback) plan"), 8),
)


def weight_of(kind: str) -> int:
    """How often a kind is drawn: files that are mostly empty seldom, those that hold rows, or name files, often."""
    return next((weight for pattern, weight in _WEIGHTS if pattern.search(kind)), 4)
