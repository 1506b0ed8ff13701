"""Which merge rules (winning_version.py) a table has by its properties: payload class, merge mode, delete marks, as
merge_mode.py reads them.

They depend on the Hudi release that keeps the table. Hudi 0.15 merges table version 6 by payload classes. Hudi 1.x
merges by record merge modes, and by payload classes in CUSTOM mode, where 1.0 differs from 1.1 and later; it keeps a
version 6 table that has properties of 1.x. docs/merge.md describes the rules for users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from hudi_core.config.rows_config import MERGE_FUNCTION, USE_RECORD_POSITIONS
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.merge.merge_mode import (
    FILL_OF,
    MARKER_OF,
    ORDERING_FIELDS_KEY,
    PARTIAL_UPDATE_KEY,
    UNAVAILABLE_KEY,
    DeleteMark,
    Fill,
    Mode,
    Payload,
    check_strategy_0_15,
    delete_marks,
    merge_properties,
    payload_of,
    reads_as_hudi_1,
    resolve_mode,
)
from hudi_core.model.names import RECORD_KEY


class Rules(str, Enum):
    """The release and the mode whose way of folding is in force."""

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
    """What a merge needs to know of a table.

    `key_fields` are the columns that hold the record key. `ordering_fields` is empty when rows of a key are ordered by
    arrival alone. `fill` is which fields of a row are filled from the row that it wins over, `fill_marker` the text of
    Fill.MARKER. `string_deletes_win`: Hudi 1.0 takes a delete with a text ordering value as newer than any record
    before it. `function` names the registered function of Rules.FUNCTION. `by_position`: where log blocks name rows of
    the base file, these are merged, and not the first ones with the records' keys.
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

    @property
    def is_hudi_1(self) -> bool:
        """Whether Hudi 1.x's meaning of null and default ordering values is in force."""
        return self.rules is not Rules.PAYLOAD_0_15

    @property
    def is_ordered(self) -> bool:
        return self.rules not in (Rules.COMMIT_TIME, Rules.FUNCTION)

    @property
    def whole_rows(self) -> bool:
        return self.rules is Rules.FUNCTION

    @staticmethod
    def for_table(config: TableConfig, options: Mapping[str, str] | None = None) -> MergePolicy:
        """`options` may hold `airflow_hudi.merge.function` and `hoodie.payload.delete.*`, which Hudi keeps in no
        properties before table version 9. Raises UnsupportedError naming a payload class or merge strategy that this
        engine does not implement, ConfigError for properties that contradict each other.
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
    payload = payload_of(config.payload_class, config.ordering_fields, default=Payload.LATEST, path=config.path)
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
    """PartialUpdateHandler.partialMerge: the modes KEEP_VALUES and FILL_DEFAULTS change nothing there."""
    modes = {"IGNORE_DEFAULTS": Fill.REFERENCE_DEFAULT, "FILL_UNAVAILABLE": Fill.MARKER}
    modes |= {"KEEP_VALUES": Fill.NOTHING, "FILL_DEFAULTS": Fill.NOTHING}
    if mode not in modes:
        raise UnsupportedError(f"{PARTIAL_UPDATE_KEY} is {mode!r}", path=path, remedy=f"{', '.join(modes)} are known")
    return modes[mode]


def key_fields(config: TableConfig) -> tuple[str, ...]:
    """The columns of stored rows that make the record key: the key fields of a table without meta columns
    (HoodieTableConfig.getRecordKeyFields). Raises UnsupportedError where there are none.
    """
    if config.populate_meta_fields:
        return (RECORD_KEY,)
    if not config.record_key_fields:
        message = "a table without _hoodie_ columns and without record key fields has no record keys"
        raise UnsupportedError(message, path=config.path)
    return config.record_key_fields
