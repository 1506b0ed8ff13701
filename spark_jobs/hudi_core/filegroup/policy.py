"""How two versions of a row become one: the payload classes of table version 6 (facts 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.model.meta_fields import RECORD_KEY

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig
    from hudi_core.model.engine import Json

_PACKAGE = "org.apache.hudi.common.model."
OVERWRITE_WITH_LATEST = _PACKAGE + "OverwriteWithLatestAvroPayload"
DEFAULT_PAYLOAD = _PACKAGE + "DefaultHoodieRecordPayload"
SUPPORTED = (OVERWRITE_WITH_LATEST, DEFAULT_PAYLOAD)

STRATEGY_KEYS = ("hoodie.compaction.record.merger.strategy", "hoodie.record.merge.strategy.id")
"""The name of Hudi 0.15, and the one that 1.x gives it in the same tables."""
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
"""Written to every version 6 table by Hudi 0.15; without a custom merger it changes nothing."""
MERGE_MODE_KEY = "hoodie.record.merge.mode"
HUDI_1_KEYS = (STRATEGY_KEYS[1], MERGE_MODE_KEY, "hoodie.table.keygenerator.type")
"""Properties that only Hudi 1.x writes: a version 6 table that has one is kept by 1.x."""
DELETE_FIELD_KEY = "hoodie.payload.delete.field"
DELETE_MARKER_KEY = "hoodie.payload.delete.marker"


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """What a merge needs to know of a table.

    `key_field` is the column that holds the record key. `ordering_field` is None when rows of a key are ordered by arrival alone.
    `compare_with_base` makes a base row survive a log record with a smaller ordering value (DefaultHoodieRecordPayload). With
    `delete_field`, a log record is a delete when that column, as text, equals `delete_marker`; otherwise `_hoodie_is_deleted` says so.
    `kept_by_hudi_1`: the table's other readers and writers are Hudi 1.x, whose rules differ from 0.15's, by which this engine merges.
    """

    key_field: str
    ordering_field: str | None
    compare_with_base: bool
    delete_field: str | None = None
    delete_marker: str | None = None
    kept_by_hudi_1: bool = False

    @staticmethod
    def for_table(config: TableConfig, options: Mapping[str, str] | None = None) -> MergePolicy:
        """The policy of a table. `options` may carry `hoodie.payload.delete.*`, which Hudi does not keep in the table's properties.

        Raises UnsupportedError naming the payload class, merge strategy or key layout that this engine does not merge by.
        """
        given = {**config.raw, **(options or {})}
        payload = config.payload_class or OVERWRITE_WITH_LATEST
        if payload not in SUPPORTED:
            raise UnsupportedError(
                f"payload class {payload} is not supported", path=config.path, remedy=f"rows are merged by {' and '.join(SUPPORTED)} only"
            )
        for key, inert in (*((key, EVENT_TIME_STRATEGY) for key in STRATEGY_KEYS), (MERGE_MODE_KEY, None)):
            value = given.get(key)
            if value and value != inert:
                raise UnsupportedError(f"{key} is {value}, which this engine does not merge by", path=config.path)
        if config.ordering_field is not None and "." in config.ordering_field:
            raise UnsupportedError(f"ordering field {config.ordering_field!r} lies within another column", path=config.path)
        is_default = payload == DEFAULT_PAYLOAD
        delete_field = given.get(DELETE_FIELD_KEY) if is_default else None
        if delete_field and not given.get(DELETE_MARKER_KEY):
            raise ConfigError(f"{DELETE_FIELD_KEY} is set without {DELETE_MARKER_KEY}", path=config.path)
        return MergePolicy(
            key_field=_key_field(config),
            ordering_field=config.ordering_field,
            compare_with_base=is_default,
            delete_field=delete_field or None,
            delete_marker=given.get(DELETE_MARKER_KEY) if delete_field else None,
            kept_by_hudi_1=any(key in config.raw for key in HUDI_1_KEYS),
        )

    def to_json(self) -> Json:
        """The policy as a JSON object."""
        return asdict(self)

    @staticmethod
    def from_json(raw: Json) -> MergePolicy:
        """The inverse of to_json; raises ConfigError for anything else."""
        try:
            values: dict[str, Any] = dict(raw)
            return MergePolicy(**values)
        except TypeError as error:
            raise ConfigError(f"merge policy is not what this version writes: {error}") from error


def _key_field(config: TableConfig) -> str:
    """The record key column; a table without meta columns keeps it in the one key field (HoodieTableConfig.getRecordKeyFieldProp)."""
    if config.populate_meta_fields:
        return RECORD_KEY
    if len(config.record_key_fields) != 1:
        names = ", ".join(config.record_key_fields) or "none"
        raise UnsupportedError(
            f"a table without _hoodie_ columns and with record key fields {names}",
            path=config.path,
            remedy="log files are merged by one key field only",
        )
    return config.record_key_fields[0]
