"""The record merge mode and the payload class of a table by its properties (HoodieTableConfig, DeleteContext), as
values: no class is ever loaded; and what marks a row as deleted. table_policy.py makes the rule of a table of them;
winning_version.py has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.model.names import IS_DELETED, OPERATION

_PACKAGE = "org.apache.hudi.common.model."


class Payload(str, Enum):
    LATEST = _PACKAGE + "OverwriteWithLatestAvroPayload"
    DEFAULT = _PACKAGE + "DefaultHoodieRecordPayload"
    EVENT_TIME = _PACKAGE + "EventTimeAvroPayload"
    NON_DEFAULTS = _PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload"
    PARTIAL_UPDATE = _PACKAGE + "PartialUpdateAvroPayload"
    AWS_DMS = _PACKAGE + "AWSDmsAvroPayload"
    POSTGRES = _PACKAGE + "debezium.PostgresDebeziumAvroPayload"


class Fill(str, Enum):
    """Which fields of a row that wins over another take that one's value."""

    NOTHING = "nothing"
    NULL = "null"
    """Nulls (PartialUpdateAvroPayload.overwriteField)."""
    DEFAULT = "default"
    """Values equal to the field's default (OverwriteWithLatestAvroPayload.overwriteField)."""
    REFERENCE_DEFAULT = "reference_default"
    """Values that are the same Java object as the field's default: null, booleans, and whole numbers from -128 to 127
    (PartialUpdateHandler.reconcileDefaultValues of 1.1 and later compares by reference).
    """
    MARKER = "marker"
    """Text and bytes equal to the marker of unavailable values."""


TOASTED_VALUE = "__debezium_unavailable_value"
MARKER_OF = {Payload.POSTGRES: TOASTED_VALUE}
POSTGRES_ORDER = "_event_lsn"
"""What PostgresDebeziumAvroPayload compares a log record and a base row by, whatever the table's ordering field."""
FILL_OF = {Payload.NON_DEFAULTS: Fill.DEFAULT, Payload.PARTIAL_UPDATE: Fill.NULL, Payload.POSTGRES: Fill.MARKER}


def payload_of(name: str | None, ordering_fields: tuple[str, ...], *, default: Payload, path: str) -> Payload:
    """The payload class of this name; `default` for none. Raises UnsupportedError naming the class, with `path`, for an
    unknown one, and where it would compare by another column than the table's ordering field.
    """
    try:
        payload = Payload(name) if name else default
    except ValueError:
        known = ", ".join(payload.value.rsplit(".", 1)[1] for payload in Payload)
        raise UnsupportedError(
            f"payload class {name} is not supported",
            path=path,
            remedy=(
                f"rows are merged by {known}, or by a function of yours: register_merger and the option "
                "airflow_hudi.merge.function"
            ),
        ) from None
    if payload is Payload.POSTGRES and ordering_fields != (POSTGRES_ORDER,):
        message = f"{payload.value} with the ordering field {', '.join(ordering_fields) or 'none'}"
        remedy = f"it compares rows by {POSTGRES_ORDER}, so that must be the ordering field"
        raise UnsupportedError(message, path=path, remedy=remedy)
    return payload


MERGE_MODE_KEY = "hoodie.record.merge.mode"
STRATEGY_KEY = "hoodie.record.merge.strategy.id"
STRATEGY_KEY_0_15 = "hoodie.compaction.record.merger.strategy"
"""Written to every version 6 table by Hudi 0.15, which merges by the payload class where it is EVENT_TIME_STRATEGY."""
STRATEGY_OPTION_0_15 = "hoodie.datasource.write.record.merger.strategy"
ORDERING_FIELDS_KEY = "hoodie.table.ordering.fields"
"""The name of the ordering column's key in Hudi 1.1 and later; 1.0 and 0.15 know only the older key."""
PARTIAL_UPDATE_KEY = "hoodie.table.partial.update.mode"
_HUDI_1_KEYS = (STRATEGY_KEY, MERGE_MODE_KEY, ORDERING_FIELDS_KEY, "hoodie.table.keygenerator.type")
"""Properties that only Hudi 1.x writes: a version 6 table that has one is kept by 1.x."""
PROPERTY_PREFIX = "hoodie.record.merge.property."
DELETE_FIELD_KEY = "hoodie.payload.delete.field"
DELETE_MARKER_KEY = "hoodie.payload.delete.marker"
UNAVAILABLE_KEY = "hoodie.write.partial.update.unavailable.value"
"""What FILL_UNAVAILABLE takes for unavailable; kept behind PROPERTY_PREFIX."""

EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"
_STRATEGIES = frozenset({EVENT_TIME_STRATEGY, COMMIT_TIME_STRATEGY, PAYLOAD_STRATEGY})


def reads_as_hudi_1(config: TableConfig) -> bool:
    """Whether Hudi 1.x reads the table's rows: the version is its own, or 1.x keeps a table of an older version."""
    return config.features.unified_reader or any(key in config.raw for key in _HUDI_1_KEYS)


class Mode(str, Enum):
    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


_BY_PAYLOAD = {
    Payload.DEFAULT.value: Mode.EVENT_TIME_ORDERING,
    Payload.EVENT_TIME.value: Mode.EVENT_TIME_ORDERING,
    Payload.LATEST.value: Mode.COMMIT_TIME_ORDERING,
}
_BY_STRATEGY = {EVENT_TIME_STRATEGY: Mode.EVENT_TIME_ORDERING, COMMIT_TIME_STRATEGY: Mode.COMMIT_TIME_ORDERING}


@dataclass(frozen=True, slots=True)
class DeleteMark:
    """A row is a delete when `column`, as text (true, false), is one of `values`; `any_case`: of any case."""

    column: str
    values: tuple[str, ...]
    any_case: bool = False


def resolve_mode(config: TableConfig) -> Mode:
    """The table's property, else inferred from payload class, strategy and ordering field
    (HoodieTableConfig.inferMergingConfigsForPreV9Table): up to version 7 the payload class takes precedence over the
    strategy. Raises UnsupportedError for a custom merger class, ConfigError for a mode that does not exist.
    """
    name = config.raw.get(MERGE_MODE_KEY)
    strategy = config.raw.get(STRATEGY_KEY) or (
        config.raw.get(STRATEGY_KEY_0_15) if config.features.merge_modes else None
    )
    if name:
        try:
            mode = Mode(name)
        except ValueError:
            remedy = f"{', '.join(mode.value for mode in Mode)} are known"
            raise ConfigError(f"{MERGE_MODE_KEY} is {name!r}", path=config.path, remedy=remedy) from None
    else:
        by_payload = _BY_PAYLOAD.get(config.payload_class, Mode.CUSTOM) if config.payload_class else None
        by_strategy = _BY_STRATEGY.get(strategy, Mode.CUSTOM) if strategy else None
        first, second = (by_strategy, by_payload) if config.features.merge_modes else (by_payload, by_strategy)
        mode = first or second or (Mode.EVENT_TIME_ORDERING if config.ordering_fields else Mode.COMMIT_TIME_ORDERING)
    if mode is Mode.CUSTOM and strategy and strategy != PAYLOAD_STRATEGY:
        raise _unknown_merger(STRATEGY_KEY, strategy, config.path)
    return mode


def check_strategy_0_15(given: Mapping[str, str], *, hudi_1: bool, path: str) -> None:
    """Raises UnsupportedError where the properties or options of a version 6 table choose a merger class of a user.
    Hudi 0.15 merges by the class of that strategy (HoodieRecordUtils.createRecordMerger), else by the payload class;
    its own mergers have EVENT_TIME_STRATEGY alone.
    """
    known = _STRATEGIES if hudi_1 else {EVENT_TIME_STRATEGY}
    for name in (STRATEGY_KEY_0_15, STRATEGY_OPTION_0_15):
        strategy = given.get(name)
        if strategy and strategy not in known:
            raise _unknown_merger(name, strategy, path)


def _unknown_merger(name: str, strategy: str, path: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} is {strategy}, a merger class that this engine does not have",
        path=path,
        remedy=(
            "write it as a Python function, register it with register_merger and name it in airflow_hudi.merge.function"
        ),
    )


def merge_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The properties of a merge: the table's `hoodie.record.merge.property.` ones take precedence over all others."""
    kept = {
        name.removeprefix(PROPERTY_PREFIX): value for name, value in given.items() if name.startswith(PROPERTY_PREFIX)
    }
    return {**given, **kept}


def delete_marks(properties: Mapping[str, str], payload: Payload, *, hudi_1: bool, path: str) -> tuple[DeleteMark, ...]:
    """What marks a row as deleted: `_hoodie_is_deleted`, the operation, the table's marker, and the payload class's. In
    Hudi 0.15 a marker of the table replaces `_hoodie_is_deleted` and only DefaultHoodieRecordPayload evaluates it, of a
    top-level column; 1.x evaluates both (RecordContext.isCustomDeleteRecord). Raises ConfigError for a field without a
    marker, or the reverse.
    """
    marks = [DeleteMark(IS_DELETED, ("true",)), DeleteMark(OPERATION, ("D", "-U") if hudi_1 else ("D",))]
    field, marker = properties.get(DELETE_FIELD_KEY), properties.get(DELETE_MARKER_KEY)
    if hudi_1 or payload is Payload.DEFAULT:
        if (field and not marker) or (marker and not field and hudi_1):
            there, lacking = (DELETE_FIELD_KEY, DELETE_MARKER_KEY) if field else (DELETE_MARKER_KEY, DELETE_FIELD_KEY)
            remedy = "set both in hoodie.properties, or none"
            raise ConfigError(f"{there} is set without {lacking}", path=path, remedy=remedy)
        if field and marker:
            named = [DeleteMark(field, (marker,))] if hudi_1 or "." not in field else []
            marks = [*(marks if hudi_1 else marks[1:]), *named]
    if payload is Payload.AWS_DMS:
        marks.append(DeleteMark("Op", ("D",), any_case=True))
    elif payload is Payload.POSTGRES:
        marks.append(DeleteMark("_change_operation_type", ("d",), any_case=True))
    return tuple(marks)
