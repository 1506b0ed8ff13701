"""The verbs of this release, one line each, and how a request is read from JSON: its class is found by the verb, its
fields by their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any, Final

from hudi_core.errors import ConfigError
from hudi_core.request.json_fields import parse_object, read_fields
from hudi_core.request.results import REQUEST_VERSION
from hudi_core.verbs.request import WHAT, InstantRequest, Request

VERBS: Final[dict[str, str]] = {
    "delete_partition": "hudi_core.verbs.overwrite:DeletePartitionRequest",
    "doctor": "hudi_core.verbs.examine:DoctorRequest",
    "insert_overwrite": "hudi_core.verbs.overwrite:InsertOverwriteRequest",
    "metadata_create": "hudi_core.verbs.metadata:MetadataCreateRequest",
    "metadata_drop": "hudi_core.verbs.metadata:MetadataDropRequest",
    "metadata_update": "hudi_core.verbs.metadata:MetadataUpdateRequest",
    "metadata_validate": "hudi_core.verbs.metadata:MetadataValidateRequest",
    "probe_store": "hudi_core.verbs.examine:ProbeStoreRequest",
    "restore": "hudi_core.verbs.instants:RestoreRequest",
    "rollback": "hudi_core.verbs.instants:RollbackRequest",
    "run": "hudi_core.verbs.run:RunRequest",
    "savepoint_create": "hudi_core.verbs.instants:SavepointCreateRequest",
    "savepoint_delete": "hudi_core.verbs.instants:SavepointDeleteRequest",
    "schedule": "hudi_core.verbs.run:ScheduleRequest",
    "takeover": "hudi_core.verbs.instants:TakeoverRequest",
    "unschedule": "hudi_core.verbs.instants:UnscheduleRequest",
}
"""`module:class` by the verb."""


def verb_class(verb: str) -> type[Request]:
    """The class of requests of a verb. Raises ConfigError for one that this release does not have."""
    if verb not in VERBS:
        raise ConfigError(f"{WHAT}: unknown verb {verb!r}", remedy=f"this release knows: {', '.join(sorted(VERBS))}")
    module, _, name = VERBS[verb].partition(":")
    cls: type[Request] = getattr(import_module(module), name)
    return cls


def parse_request(text: str | bytes) -> Request:
    """The request that `Request.to_json` wrote. Raises ConfigError for unknown fields, other versions, wrong types."""
    return request_of(parse_object(text, what=WHAT))


def request_of(value: Mapping[str, Any]) -> Request:
    version = value.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigError(f"{WHAT}: version must be a whole number", remedy=f'write "version": {REQUEST_VERSION}')
    if version != REQUEST_VERSION:
        raise ConfigError(
            f"{WHAT} has version {version}, this release reads {REQUEST_VERSION}",
            remedy="use the same release on both sides",
        )
    verb = "run" if value.get("verb") is None else value["verb"]
    if not isinstance(verb, str):
        raise ConfigError(f"{WHAT}: verb must be text")
    cls = verb_class(verb)
    check_names(cls, value.keys() - {"version", "verb"})
    if issubclass(cls, InstantRequest) and value.get("instant") is None:
        raise ConfigError(f"{WHAT}: {verb} needs an instant", remedy="name one in `instant`")
    return cls(**read_fields(cls, value, what=WHAT))


def check_names(cls: type[Request], names: set[str]) -> None:
    """Raises ConfigError for names of fields that the verb does not have: those of a newer release would be ignored."""
    wrong = sorted(names - _names(cls))
    for name in wrong:
        others = [verb for verb in VERBS if name in _names(verb_class(verb))]
        if others:
            raise ConfigError(f"{WHAT}: {cls.verb} takes no {name}", remedy=f"it is for {', '.join(others)}")
    if wrong:
        raise ConfigError(f"{WHAT} has unknown fields: {', '.join(wrong)}", remedy="use the same release on both sides")


def _names(cls: type[Request]) -> frozenset[str]:
    return frozenset(item.name for item in fields(cls))
