"""Finds a table's merge rules (winning_version.py) in its properties (HoodieTableConfig, DeleteContext): merge mode,
payload class, delete marks. They are values, and no class is ever loaded.

They depend on the Hudi release that keeps the table. Hudi 0.15 merges table version 6 by payload classes. Hudi 1.x
merges by record merge modes, and by payload classes in CUSTOM mode, where 1.0 differs from 1.1 and later. It keeps a
version 6 table that has properties of 1.x. docs/use/merge.md describes the rules for users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from hudi_core.config.rows_config import MERGE_FUNCTION, USE_RECORD_POSITIONS, WRITERS_PAYLOAD, Payload
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import IS_DELETED, OPERATION, RECORD_KEY


class Fill(str, Enum):
    """Which fields of a winning row take the value of the other row."""

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
"""The column by which PostgresDebeziumAvroPayload compares a log record and a base row, for any ordering field."""
FILL_OF = {Payload.NON_DEFAULTS: Fill.DEFAULT, Payload.PARTIAL_UPDATE: Fill.NULL, Payload.POSTGRES: Fill.MARKER}


def payload_of(name: str | None, ordering_fields: tuple[str, ...], *, default: Payload, path: str) -> Payload:
    """Returns the payload class of this name, or `default` for none. Raises UnsupportedError naming the class, with
    `path`, for an unknown class, and for a class that would compare by another column than the table's ordering field.
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
"""Hudi 0.15 writes it to every version 6 table, and merges by the payload class when it is EVENT_TIME_STRATEGY."""
STRATEGY_OPTION_0_15 = "hoodie.datasource.write.record.merger.strategy"
ORDERING_FIELDS_KEY = "hoodie.table.ordering.fields"
"""The key of the ordering column's name in Hudi 1.1 and later; 1.0 and 0.15 know only the older key."""
PARTIAL_UPDATE_KEY = "hoodie.table.partial.update.mode"
_HUDI_1_KEYS = (STRATEGY_KEY, MERGE_MODE_KEY, ORDERING_FIELDS_KEY, "hoodie.table.keygenerator.type")
"""Properties that only Hudi 1.x writes. Hudi 1.x keeps a version 6 table that has one of them."""
PROPERTY_PREFIX = "hoodie.record.merge.property."
DELETE_FIELD_KEY = "hoodie.payload.delete.field"
DELETE_MARKER_KEY = "hoodie.payload.delete.marker"
UNAVAILABLE_KEY = "hoodie.write.partial.update.unavailable.value"
"""The key of the value that FILL_UNAVAILABLE takes for unavailable. It follows PROPERTY_PREFIX."""

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
    """A row is a delete when `column`, as text (true, false), is one of `values`, in any case with `any_case`."""

    column: str
    values: tuple[str, ...]
    any_case: bool = False


def resolve_mode(config: TableConfig) -> Mode:
    """Returns the table's property, or infers the mode from payload class, strategy and ordering field
    (HoodieTableConfig.inferMergingConfigsForPreV9Table). Up to version 7, the payload class takes precedence over the
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
    """Raises UnsupportedError when the properties or options of a version 6 table choose a merger class of a user. Hudi
    0.15 merges by the class of that strategy (HoodieRecordUtils.createRecordMerger), else by the payload class; its own
    mergers have EVENT_TIME_STRATEGY alone.
    """
    known = _STRATEGIES if hudi_1 else {EVENT_TIME_STRATEGY}
    for name in (STRATEGY_KEY_0_15, STRATEGY_OPTION_0_15):
        strategy = given.get(name)
        if strategy and strategy not in known:
            raise _unknown_merger(name, strategy, path)


def _unknown_merger(name: str, strategy: str, path: str) -> UnsupportedError:
    message = f"{name} is {strategy}, a merger class that this engine does not have"
    remedy = (
        "write it as a Python function, register it with register_merger and name it in airflow_hudi.merge.function"
    )
    return UnsupportedError(message, path=path, remedy=remedy)


def merge_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of a merge. The table's `hoodie.record.merge.property.` ones come first."""
    kept = {
        name.removeprefix(PROPERTY_PREFIX): value for name, value in given.items() if name.startswith(PROPERTY_PREFIX)
    }
    return {**given, **kept}


def delete_marks(properties: Mapping[str, str], payload: Payload, *, hudi_1: bool, path: str) -> tuple[DeleteMark, ...]:
    """Returns the marks of deleted rows: `_hoodie_is_deleted`, the operation, the table's marker, and the payload
    class's mark. In Hudi 0.15, a marker of the table replaces `_hoodie_is_deleted`, and only DefaultHoodieRecordPayload
    evaluates it, in a top-level column; 1.x evaluates both (RecordContext.isCustomDeleteRecord). Raises ConfigError for
    a field without a marker, and in 1.x for a marker without a field.
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


class Rules(str, Enum):
    """The release and the mode whose rules of folding apply."""

    PAYLOAD_0_15 = "payload_0_15"
    """HoodieMergedLogRecordScanner and the payload class (Hudi 0.15)."""
    COMMIT_TIME = "commit_time"
    EVENT_TIME = "event_time"
    CUSTOM_1_0 = "custom_1_0"
    """FileGroupRecordBuffer of Hudi 1.0 with a payload class."""
    CUSTOM_1_1 = "custom_1_1"
    """HoodieAvroRecordMerger of Hudi 1.1 and later with a payload class."""
    FUNCTION = "function"
    """A function registered in this process (filegroup.merge.user_mergers)."""


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """What a merge needs to know of a table. `key_fields` are the columns that hold the record key. `ordering_fields`
    is empty when only arrival orders the rows of a key. `fill` says which fields of a row are filled from the row that
    it wins over; `fill_marker` is the text of Fill.MARKER. With `string_deletes_win`, a delete with a text ordering
    value is newer than any record before it, as in Hudi 1.0. `function` names the registered function of
    Rules.FUNCTION. With `by_position`, the rows of the base file that log blocks name are merged, and not the first
    ones with the records' keys. `in_write` says that a write merges new rows into a base file, where Hudi 1.0 asks the
    payload class and not its reader (HoodieMergeHandle).
    """

    key_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    rules: Rules = Rules.PAYLOAD_0_15
    payload: Payload = Payload.LATEST
    fill: Fill = Fill.NOTHING
    fill_marker: str | None = None
    delete_marks: tuple[DeleteMark, ...] = ()
    string_deletes_win: bool = False
    function: str | None = None
    by_position: bool = False
    in_write: bool = False

    @property
    def asks_payload(self) -> bool:
        """Whether HoodieRecordPayload.combineAndGetUpdateValue decides about a stored row, deletes included."""
        return self.rules is Rules.PAYLOAD_0_15 or (self.rules is Rules.CUSTOM_1_0 and self.in_write)

    @property
    def is_hudi_1(self) -> bool:
        """Whether null and default ordering values have Hudi 1.x's meaning."""
        return self.rules is not Rules.PAYLOAD_0_15

    @property
    def is_ordered(self) -> bool:
        return self.rules not in (Rules.COMMIT_TIME, Rules.FUNCTION)

    @property
    def whole_rows(self) -> bool:
        return self.rules is Rules.FUNCTION

    @staticmethod
    def for_table(config: TableConfig, options: Mapping[str, str] | None = None) -> MergePolicy:
        """Returns the policy of a table. `options` may hold `airflow_hudi.merge.function`, and what Hudi
        keeps in no properties: `hoodie.payload.delete.*` before table version 9, and in a copy-on-write table of 0.15
        the payload class. Raises UnsupportedError
        naming a payload class or merge strategy that this engine does not implement, ConfigError for properties that
        contradict each other.
        """
        settings = {**config.raw, **(options or {})}
        function = MERGE_FUNCTION.read(options or {})
        hudi_1 = reads_as_hudi_1(config)
        by_position = hudi_1 and USE_RECORD_POSITIONS.read(options or {})
        bare = MergePolicy(key_fields(config), config.ordering_fields, by_position=by_position)
        if function is not None:
            marks = delete_marks(merge_properties(settings), Payload.LATEST, hudi_1=True, path=config.path)
            return replace(bare, rules=Rules.FUNCTION, delete_marks=marks, function=function)
        if not config.features.merge_modes:
            check_strategy_0_15(settings, hudi_1=hudi_1, path=config.path)
        return _by_mode(bare, config, settings) if hudi_1 else _by_payload_class(bare, config, settings)


def _by_payload_class(bare: MergePolicy, config: TableConfig, settings: Mapping[str, str]) -> MergePolicy:
    # Hudi 0.15 keeps no payload class in the properties of a copy-on-write table: its writers have it as an option.
    name = config.payload_class or WRITERS_PAYLOAD.read(settings)
    payload = payload_of(name, config.ordering_fields, default=Payload.LATEST, path=config.path)
    fill, marker = FILL_OF.get(payload, Fill.NOTHING), MARKER_OF.get(payload)
    marks = delete_marks(settings, payload, hudi_1=False, path=config.path)
    return replace(bare, payload=payload, fill=fill, fill_marker=marker, delete_marks=marks)


def _by_mode(bare: MergePolicy, config: TableConfig, settings: Mapping[str, str]) -> MergePolicy:
    properties = merge_properties(settings)
    mode = resolve_mode(config)
    since_1_1 = config.features.partial_update_modes or ORDERING_FIELDS_KEY in config.raw
    payload, fill, marker = Payload.LATEST, Fill.NOTHING, None
    if mode is Mode.CUSTOM:
        payload = payload_of(config.payload_class, config.ordering_fields, default=Payload.DEFAULT, path=config.path)
        rules = Rules.CUSTOM_1_1 if since_1_1 else Rules.CUSTOM_1_0
        # HoodieAvroRecordMerger of 1.1 and later drops what PostgresDebeziumAvroPayload filled in: the class changes
        # the Avro copy of the newer row and returns that same object, which the merger takes for the unchanged row.
        if not (since_1_1 and payload is Payload.POSTGRES):
            fill, marker = FILL_OF.get(payload, Fill.NOTHING), MARKER_OF.get(payload)
    else:
        rules = Rules.COMMIT_TIME if mode is Mode.COMMIT_TIME_ORDERING else Rules.EVENT_TIME
        if config.features.partial_update_modes and config.raw.get(PARTIAL_UPDATE_KEY):
            fill = _fill_of_mode(config.raw[PARTIAL_UPDATE_KEY], config.path)
            marker = properties.get(UNAVAILABLE_KEY) if fill is Fill.MARKER else None
    marks = delete_marks(properties, payload, hudi_1=True, path=config.path)
    chosen = replace(bare, rules=rules, payload=payload, fill=fill, fill_marker=marker, delete_marks=marks)
    return replace(chosen, string_deletes_win=not since_1_1)


def _fill_of_mode(mode: str, path: str) -> Fill:
    """Returns the fill of a mode (PartialUpdateHandler.partialMerge). KEEP_VALUES and FILL_DEFAULTS change nothing."""
    modes = {"IGNORE_DEFAULTS": Fill.REFERENCE_DEFAULT, "FILL_UNAVAILABLE": Fill.MARKER}
    modes |= {"KEEP_VALUES": Fill.NOTHING, "FILL_DEFAULTS": Fill.NOTHING}
    if mode not in modes:
        raise UnsupportedError(f"{PARTIAL_UPDATE_KEY} is {mode!r}", path=path, remedy=f"{', '.join(modes)} are known")
    return modes[mode]


def key_fields(config: TableConfig) -> tuple[str, ...]:
    """Returns the columns of stored rows that make the record key. In a table without meta columns, they are the key
    fields (HoodieTableConfig.getRecordKeyFields). Raises UnsupportedError when there are none.
    """
    if config.populate_meta_fields:
        return (RECORD_KEY,)
    if not config.record_key_fields:
        message = "a table without _hoodie_ columns and without record key fields has no record keys"
        raise UnsupportedError(message, path=config.path)
    return config.record_key_fields
