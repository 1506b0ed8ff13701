"""From the results of a compaction's units to its commit metadata (RunCompactionActionExecutor of Hudi 0.15)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hudi_core.model.stats import WriteStat
from hudi_core.services.provenance import provenance
from hudi_core.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, Operation
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.query import Timeline
from hudi_core.transaction.owner import Owner

_CHECKPOINTS = ("deltastreamer.checkpoint.", "streamer.checkpoint.")
"""Extra metadata in which Hudi's streamers keep how far they have read; they look for it on the latest commit first."""


def compaction_metadata(stats: Sequence[WriteStat], schema: Mapping[str, Any], carried: Mapping[str, str], owner: Owner) -> CommitMetadata:
    """The metadata of a compaction's commit: `schema` is the table's Avro schema without meta fields, `carried` the streamers' checkpoints."""
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition_path, []).append(stat)
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return CommitMetadata(
        partition_to_write_stats={partition: tuple(items) for partition, items in sorted(by_partition.items())},
        compacted=True,
        operation_type=Operation.COMPACT,
        extra_metadata={SCHEMA_KEY: text, **carried, **provenance(owner)},
    )


def carried_checkpoints(timeline: Timeline, instant: str, read: Callable[[Instant], CommitMetadata]) -> dict[str, str]:
    """The streamers' checkpoints of the last commit before `instant`.

    Not of a later one: if that is rolled back, a checkpoint copied to an earlier instant would make the streamer skip its input.
    """
    last = timeline.commits().before(instant).last()
    if last is None:
        return {}
    extra = read(last).extra_metadata
    return {key: value for key, value in extra.items() if value is not None and key.startswith(_CHECKPOINTS)}
