from __future__ import annotations

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import (
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_STRATEGY,
    MERGE_MODE_KEY,
    PAYLOAD_STRATEGY,
    STRATEGY_KEY,
    DeleteMark,
    Mode,
    Payload,
    delete_marks,
    merge_properties,
    resolve_mode,
)

ORDERED = {"hoodie.table.precombine.field": "ts"}


def config(version: int, raw: dict[str, str]) -> TableConfig:
    table = {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": str(version)}
    return TableConfig.of({**table, **raw})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, Mode.COMMIT_TIME_ORDERING),
        (ORDERED, Mode.EVENT_TIME_ORDERING),
        ({MERGE_MODE_KEY: "CUSTOM"}, Mode.CUSTOM),
        ({**ORDERED, STRATEGY_KEY: COMMIT_TIME_STRATEGY}, Mode.COMMIT_TIME_ORDERING),
        ({"hoodie.compaction.payload.class": Payload.DEFAULT.value}, Mode.EVENT_TIME_ORDERING),
        ({**ORDERED, "hoodie.compaction.payload.class": Payload.LATEST.value}, Mode.COMMIT_TIME_ORDERING),
        ({"hoodie.compaction.payload.class": Payload.POSTGRES.value}, Mode.CUSTOM),
    ],
)
def test_the_mode_of_a_table(raw: dict[str, str], expected: Mode) -> None:
    assert resolve_mode(config(8, raw)) is expected


def test_payload_class_or_strategy_goes_first_by_the_version() -> None:
    both = {"hoodie.compaction.payload.class": Payload.LATEST.value, STRATEGY_KEY: EVENT_TIME_STRATEGY}
    assert resolve_mode(config(6, both)) is Mode.COMMIT_TIME_ORDERING
    assert resolve_mode(config(8, both)) is Mode.EVENT_TIME_ORDERING


def test_modes_that_are_none_and_mergers_that_are_not_here() -> None:
    with pytest.raises(ConfigError, match="'NEWEST'"):
        resolve_mode(config(8, {MERGE_MODE_KEY: "NEWEST"}))
    with pytest.raises(UnsupportedError, match="a merger class"):
        resolve_mode(config(8, {STRATEGY_KEY: "11111111-0000-0000-0000-000000000000"}))
    assert resolve_mode(config(8, {MERGE_MODE_KEY: "CUSTOM", STRATEGY_KEY: PAYLOAD_STRATEGY})) is Mode.CUSTOM


def test_properties_that_the_table_keeps_go_first() -> None:
    given = {"hoodie.record.merge.property.a": "table", "a": "option", "b": "option"}
    assert merge_properties(given) == {**given, "a": "table"}


FLAG, DELETED = DeleteMark("_hoodie_is_deleted", ("true",)), DeleteMark("_hoodie_operation", ("D",))
MARKER = {"hoodie.payload.delete.field": "gone", "hoodie.payload.delete.marker": "yes"}


def test_what_marks_a_row_as_deleted() -> None:
    """Hudi 0.15 looks for the table's own marker instead of the flag; 1.x for both."""
    assert delete_marks({}, Payload.LATEST, hudi_1=False, path="x") == (FLAG, DELETED)
    own = DeleteMark("gone", ("yes",))
    assert delete_marks(MARKER, Payload.DEFAULT, hudi_1=False, path="x") == (DELETED, own)
    assert delete_marks(MARKER, Payload.LATEST, hudi_1=False, path="x") == (FLAG, DELETED)
    changed = DeleteMark("_hoodie_operation", ("D", "-U"))
    assert delete_marks(MARKER, Payload.LATEST, hudi_1=True, path="x") == (FLAG, changed, own)
    assert delete_marks({}, Payload.AWS_DMS, hudi_1=False, path="x")[-1] == DeleteMark("Op", ("D",), any_case=True)


@pytest.mark.parametrize("name", list(MARKER))
def test_half_a_marker(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is set without"):
        delete_marks({name: "x"}, Payload.DEFAULT, hudi_1=True, path="x")
