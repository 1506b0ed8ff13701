"""Reads a run request: the class is found by the verb, its fields by their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final

from hudi_core.errors import ConfigError
from hudi_core.request import overwrites, requests
from hudi_core.request.json_fields import parse_object, read_fields
from hudi_core.request.requests import REQUEST_VERSION, InstantRequest, Request, RunRequest

_WHAT: Final = "run request"

VERBS: Final[Mapping[str, type[Request]]] = {
    cls.verb: cls
    for cls in (
        overwrites.DeletePartitionRequest,
        requests.DoctorRequest,
        overwrites.InsertOverwriteRequest,
        requests.MetadataCreateRequest,
        requests.MetadataDropRequest,
        requests.MetadataUpdateRequest,
        requests.MetadataValidateRequest,
        requests.ProbeStoreRequest,
        requests.RestoreRequest,
        requests.RollbackRequest,
        requests.RunRequest,
        requests.SavepointCreateRequest,
        requests.SavepointDeleteRequest,
        requests.ScheduleRequest,
        requests.TakeoverRequest,
        requests.UnscheduleRequest,
    )
}


def parse_request(text: str | bytes) -> Request:
    """The request that `Request.to_json` wrote. Raises ConfigError for unknown fields, other versions, wrong types.

    Earlier releases wrote the fields of all verbs: one of another verb is accepted with its default value.
    """
    return request_of(parse_object(text, what=_WHAT))


def request_of(value: Mapping[str, Any]) -> Request:
    """The request that a JSON object describes; see parse_request."""
    version = value.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigError(f"{_WHAT}: version must be a whole number", remedy=f'write "version": {REQUEST_VERSION}')
    if version != REQUEST_VERSION:
        raise ConfigError(
            f"{_WHAT} has version {version}, this release reads {REQUEST_VERSION}",
            remedy="use the same release on both sides",
        )
    # Fields of a newer release would be ignored silently.
    unknown = sorted(value.keys() - {"version", "verb"} - _names(Request) - _DEFAULTS.keys())
    if unknown:
        raise ConfigError(
            f"{_WHAT} has unknown fields: {', '.join(unknown)}", remedy="use the same release on both sides"
        )
    verb = RunRequest.verb if value.get("verb") is None else value["verb"]
    if not isinstance(verb, str):
        raise ConfigError(f"{_WHAT}: verb must be text")
    cls = VERBS.get(verb)
    if cls is None:
        raise ConfigError(f"{_WHAT}: unknown verb {verb!r}", remedy=f"this release knows: {', '.join(sorted(VERBS))}")
    refuse_other_verbs(cls, value)
    if issubclass(cls, InstantRequest) and value.get("instant") is None:
        raise ConfigError(f"{_WHAT}: {verb} needs an instant", remedy="name one in `instant`")
    return cls(**read_fields(cls, value, what=_WHAT))


def refuse_other_verbs(cls: type[Request], values: Mapping[str, Any]) -> None:
    """Raises ConfigError when `values` hold a field of another verb, with another value than its default."""
    for name in sorted((_DEFAULTS.keys() & values.keys()) - _names(cls)):
        given = tuple(values[name]) if isinstance(values[name], list) else values[name]
        if given != _DEFAULTS[name]:
            verbs = ", ".join(verb for verb, other in VERBS.items() if name in _names(other))
            raise ConfigError(f"{_WHAT}: {cls.verb} takes no {name}", remedy=f"it is for {verbs}")


def _names(cls: type[Request]) -> frozenset[str]:
    return frozenset(item.name for item in fields(cls))


def _default(item: Field[Any]) -> Any:
    """What earlier releases wrote for a field of another verb."""
    if item.default is not MISSING:
        return item.default
    if item.default_factory is not MISSING:
        return item.default_factory()
    return {"service": "compaction", "instant": None}[item.name]


_DEFAULTS: Final[Mapping[str, Any]] = {
    item.name: _default(item) for cls in VERBS.values() for item in fields(cls) if item.name not in _names(Request)
}
"""The fields that only some verbs have."""
