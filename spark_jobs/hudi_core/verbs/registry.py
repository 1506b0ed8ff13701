"""The registry of verbs. It imports no class of a verb: hudictl's help needs the names alone."""

from __future__ import annotations

from typing import Final

VERBS: Final[dict[str, str]] = {
    "create": "hudi_core.verbs.create:CreateRequest",
    "delete_partition": "hudi_core.verbs.write:DeletePartitionRequest",
    "doctor": "hudi_health.verbs:DoctorRequest",
    "insert_overwrite": "hudi_core.verbs.write:InsertOverwriteRequest",
    "metadata_create": "hudi_core.verbs.metadata:MetadataCreateRequest",
    "metadata_drop": "hudi_core.verbs.metadata:MetadataDropRequest",
    "metadata_update": "hudi_core.verbs.metadata:MetadataUpdateRequest",
    "metadata_validate": "hudi_health.verbs:MetadataValidateRequest",
    "probe_store": "hudi_health.verbs:ProbeStoreRequest",
    "restore": "hudi_core.verbs.instants:RestoreRequest",
    "rollback": "hudi_core.verbs.instants:RollbackRequest",
    "run": "hudi_core.verbs.run:RunRequest",
    "savepoint_create": "hudi_core.verbs.instants:SavepointCreateRequest",
    "savepoint_delete": "hudi_core.verbs.instants:SavepointDeleteRequest",
    "schedule": "hudi_core.verbs.run:ScheduleRequest",
    "takeover": "hudi_core.verbs.instants:TakeoverRequest",
    "unschedule": "hudi_core.verbs.instants:UnscheduleRequest",
    "write": "hudi_core.verbs.write:WriteRequest",
}
"""The `module:class` of each verb."""
