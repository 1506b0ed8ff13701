"""What an overwrite's instant holds before it completes: insert_overwrite, insert_overwrite_table, delete_partition.

The requested file is a HoodieRequestedReplaceMetadata without a plan, the inflight file a HoodieCommitMetadata that
names the operation. A token that identifies the work for whoever requests it again is in the extra metadata of the
requested file, and of the completed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.timeline.actions.commit import Operation, encode_inflight, to_come
from hudi_core.timeline.actions.compaction import MISSING_FIELD
from hudi_core.timeline.actions.container import decode_record, encode_datum
from hudi_core.timeline.actions.plan_fields import text_map

TOKEN_KEY: Final = "airflow_hudi.token"
"""The extra-metadata key of a token."""
_SCHEMA: Final = "HoodieRequestedReplaceMetadata"


def encode_requested_overwrite(
    operation: str, *, token: str | None, layout: int, names_deletes: bool, process: Mapping[str, str] | None = None
) -> bytes:
    """The requested file: all null, in the schema of Hudi 0.15 (layout 1) or of 1.x; with `names_deletes` that of a
    delete_partition has its name, as of Hudi 1.2. A token, and the `process` (transaction.own_writes), no Hudi writes.
    """
    named = names_deletes and operation == Operation.DELETE_PARTITION
    extra = {**({} if token is None else {TOKEN_KEY: token}), **(process or {})}
    requested = {
        "operationType": operation if named else None,
        "clusteringPlan": None,
        "extraMetadata": extra if extra or named else None,
        "version": 1 if named else None,
    }
    if layout == 1:
        return encode_datum(_SCHEMA, requested)
    return encode_datum(_SCHEMA, requested, later_fields=[MISSING_FIELD], later_in="clusteringPlan")


def encode_inflight_overwrite(operation: str, rows: Mapping[str, int], *, layout: int) -> bytes:
    """The inflight file: how many `rows` will go to each partition."""
    profile = {partition: (to_come(inserts=count),) for partition, count in rows.items()}
    return encode_inflight(operation, profile, layout=layout)


def requested_extra(data: bytes, *, path: str) -> Mapping[str, str]:
    """The extra metadata of a requested replacecommit. Raises CorruptFileError naming `path`."""
    if not data:
        return {}
    raw = decode_record(data, "operationType", "requested replacecommit", path=path)
    return text_map(raw, "extraMetadata", path=path)
