"""Completes a partition's initialization: checks the tasks' files, deletes those of lost attempts, and writes the
deltacommit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_core.errors import ExecutionError
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition, base_stat
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.stats import WriteStat
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.transaction.reconcile import remove_losers

InitializedGroups = Mapping[str, tuple[NewPartition, Sequence[NewBaseFile]]]
"""By metadata partition, where it was written and its base files."""


def check_written(target: NewPartition, written: Sequence[NewBaseFile]) -> None:
    """Tasks report what they wrote: each group once, under the name of this instant. Raises ExecutionError where that
    is not so.
    """
    by_group = {item.file_id: item for item in written}
    wrong = [
        item
        for item in written
        if item.file_id not in target.file_ids or not item.name.endswith(f"_{target.instant}.hfile") or item.size <= 0
    ]
    if len(by_group) != len(written) or wrong:
        raise ExecutionError(
            f"what was written of the metadata partition `{target.name}` does not fit its file groups",
            path=target.folder,
        )


def remove_attempts(storage: Storage, target: NewPartition, written: Sequence[NewBaseFile]) -> None:
    """Deletes what other attempts of the tasks left: it would count beside the winners' files."""
    winners = {f"{target.folder}/{item.name}": item.size for item in written}
    remove_losers(storage, target.instant, [target.folder], winners)


def initialization_content(initialized: InitializedGroups, schema: str, metadata_timeline: MetadataTimeline) -> bytes:
    """The completed file of the deltacommit that initializes partitions; `schema` is that of the records, without meta
    fields.
    """
    features = metadata_timeline.features
    extra = {} if features.json_commits else {"numUpdates": 0, "totalLogReadTimeMs": 0}
    stats: dict[str, tuple[WriteStat, ...]] = {
        name: tuple(base_stat(target, item, extra) for item in written)
        for name, (target, written) in initialized.items()
        if written
    }
    metadata = CommitMetadata(stats, False, features.metadata_initialized_with, {SCHEMA_KEY: schema})
    if features.json_commits:
        return encode_commit(metadata)
    # The schema's default for it is 1, but Hudi writes null.
    return encode_commit_avro(
        CommitMetadata(stats, False, features.metadata_initialized_with, {SCHEMA_KEY: schema}, extra={"version": None})
    )
