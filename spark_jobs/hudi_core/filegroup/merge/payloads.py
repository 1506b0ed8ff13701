"""The payload classes that this engine implements, as values: no class is ever loaded.

They are those of org.apache.hudi.common.model.
"""

from __future__ import annotations

from enum import Enum

from hudi_core.errors import UnsupportedError

_PACKAGE = "org.apache.hudi.common.model."


class Payload(str, Enum):
    """A payload class by its name in Hudi."""

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
    """Values that are the same Java object as the field's default: null, booleans, and whole numbers from -128 to 127.

    PartialUpdateHandler.reconcileDefaultValues of 1.1 and later compares by reference, and Java caches one object for
    each of these numbers.
    """
    MARKER = "marker"
    """Text and bytes equal to the marker of unavailable values."""


TOASTED_VALUE = "__debezium_unavailable_value"
MARKER_OF = {Payload.POSTGRES: TOASTED_VALUE}
POSTGRES_ORDER = "_event_lsn"
"""What PostgresDebeziumAvroPayload compares a log record and a base row by, whatever the table's ordering field."""
FILL_OF = {Payload.NON_DEFAULTS: Fill.DEFAULT, Payload.PARTIAL_UPDATE: Fill.NULL, Payload.POSTGRES: Fill.MARKER}


def payload_of(name: str | None, ordering_fields: tuple[str, ...], *, default: Payload, path: str) -> Payload:
    """The payload class of this name; `default` for none.

    Raises UnsupportedError naming the class, with `path`, for an unknown one, and where it would compare by another
    column than the table's ordering field.
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
        raise UnsupportedError(
            f"{payload.value} with the ordering field {', '.join(ordering_fields) or 'none'}",
            path=path,
            remedy=f"it compares rows by {POSTGRES_ORDER}, so that must be the ordering field",
        )
    return payload
