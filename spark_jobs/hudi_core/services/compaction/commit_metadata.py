"""From the results of a compaction's units to its commit metadata and its file (RunCompactionActionExecutor,
CommitMetadataSerDe).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hudi_core.config.versions import TableVersion
from hudi_core.model.stats import WriteStat
from hudi_core.services.provenance import provenance
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, Operation, encode_commit, encode_commit_avro
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner

_CHECKPOINTS = ("deltastreamer.checkpoint.", "streamer.checkpoint.")
"""Extra metadata in which Hudi's streamers keep how far they have read; they look for it on the latest commit first."""


def compaction_metadata(
    stats: Sequence[WriteStat], schema: Mapping[str, Any], carried: Mapping[str, str], owner: Owner
) -> CommitMetadata:
    """The metadata of a compaction's commit: `schema` is the table's Avro schema without meta fields, `carried` the
    streamers' checkpoints.
    """
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


def encode_metadata(metadata: CommitMetadata, features: TableVersion) -> bytes:
    """The completed file of a compaction, as the table's version has it."""
    # The schema's default for `version` is 1, but Hudi writes null.
    return (
        encode_commit(metadata)
        if features.json_commits
        else encode_commit_avro(replace(metadata, extra={"version": None}))
    )


def carried_checkpoints(timeline: Timeline, instant: str, active: ActiveTimeline) -> dict[str, str]:
    """The streamers' checkpoints of the last commit before `instant`; in layout 2 none.

    Not of a later one: if that is rolled back, a checkpoint copied to an earlier instant would make the streamer skip
    its input. The streamers of layout 2 look back past commits without one, and there the compaction may complete
    behind a later commit's checkpoint.
    """
    last = timeline.commits().before(instant).last() if active.layout == 1 else None
    if last is None:
        return {}
    extra = active.read_commit(last).extra_metadata
    return {key: value for key, value in extra.items() if value is not None and key.startswith(_CHECKPOINTS)}
