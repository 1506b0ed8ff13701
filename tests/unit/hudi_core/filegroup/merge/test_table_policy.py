from __future__ import annotations

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import (
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_STRATEGY,
    PAYLOAD_STRATEGY,
    TOASTED_VALUE,
    DeleteMark,
    Fill,
    MergePolicy,
    Payload,
    Rules,
)

FLAG = DeleteMark("_hoodie_is_deleted", ("true",))
OPERATION_0_15 = DeleteMark("_hoodie_operation", ("D",))
OPERATION = DeleteMark("_hoodie_operation", ("D", "-U"))
STRATEGY = "hoodie__record__merge__strategy__id"
STRATEGY_0_15 = "hoodie__compaction__record__merger__strategy"
MODE = "hoodie__record__merge__mode"
PARTIAL = "hoodie__table__partial__update__mode"
PAYLOAD = "hoodie__compaction__payload__class"


def config(version: int = 6, **more: str | None) -> TableConfig:
    """Properties of a merge-on-read table; keyword arguments are keys with dots as two underscores, None leaves a key
    out.
    """
    ordering = "hoodie.table.ordering.fields" if version == 9 else "hoodie.table.precombine.field"
    lines: dict[str, str | None] = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": "1" if version == 6 else "2",
        "hoodie.table.recordkey.fields": "id",
        ordering: "ts",
    }
    if version == 6:
        lines["hoodie.compaction.record.merger.strategy"] = EVENT_TIME_STRATEGY
    lines |= {key.replace("__", "."): value for key, value in more.items()}
    return TableConfig.parse("\n".join(f"{key}={value}" for key, value in lines.items() if value is not None).encode())


@pytest.mark.parametrize("payload", list(Payload))
def test_payload_classes_of_version_6(payload: Payload) -> None:
    table = config(
        **{PAYLOAD: payload.value},
        hoodie__table__precombine__field="_event_lsn" if payload is Payload.POSTGRES else "ts",
    )
    policy = MergePolicy.for_table(table)
    assert (policy.rules, policy.payload, policy.is_hudi_1) == (Rules.PAYLOAD_0_15, payload, False)
    assert policy.key_fields == ("_hoodie_record_key",)
    assert policy.fill_marker == (TOASTED_VALUE if payload is Payload.POSTGRES else None)
    assert from_text(MergePolicy, to_text(policy)) == policy


def test_the_writers_payload_class_counts_where_the_properties_of_version_6_have_none() -> None:
    options = {"hoodie.datasource.write.payload.class": Payload.DEFAULT.value}
    assert MergePolicy.for_table(config(**{PAYLOAD: None}), options).payload is Payload.DEFAULT
    assert MergePolicy.for_table(config(**{PAYLOAD: None})).payload is Payload.LATEST
    assert MergePolicy.for_table(config(**{PAYLOAD: Payload.LATEST.value}), options).payload is Payload.LATEST
    with pytest.raises(UnsupportedError, match=r"com\.example\.Own"):
        MergePolicy.for_table(config(), {"hoodie.datasource.write.payload.class": "com.example.Own"})


def test_what_is_left_when_the_properties_say_nothing() -> None:
    policy = MergePolicy.for_table(config())
    assert policy == MergePolicy(("_hoodie_record_key",), ("ts",), delete_marks=(FLAG, OPERATION_0_15))
    assert (policy.is_ordered, policy.whole_rows) == (True, False)
    with pytest.raises(ConfigError, match="MergePolicy"):
        from_text(MergePolicy, '{"other": 1}')


@pytest.mark.parametrize(
    ("version", "properties", "rules", "payload", "fill"),
    [
        (8, {MODE: "COMMIT_TIME_ORDERING"}, Rules.COMMIT_TIME, Payload.LATEST, Fill.NOTHING),
        (
            8,
            {MODE: "EVENT_TIME_ORDERING", PAYLOAD: Payload.DEFAULT.value},
            Rules.EVENT_TIME,
            Payload.LATEST,
            Fill.NOTHING,
        ),
        (
            8,
            {MODE: "CUSTOM", STRATEGY: PAYLOAD_STRATEGY, PAYLOAD: Payload.EVENT_TIME.value},
            Rules.CUSTOM_1_0,
            Payload.EVENT_TIME,
            Fill.NOTHING,
        ),
        (
            8,
            {MODE: "CUSTOM", PAYLOAD: Payload.NON_DEFAULTS.value},
            Rules.CUSTOM_1_0,
            Payload.NON_DEFAULTS,
            Fill.DEFAULT,
        ),
        (
            8,
            {MODE: "CUSTOM", PAYLOAD: Payload.PARTIAL_UPDATE.value, "hoodie__table__ordering__fields": "ts"},
            Rules.CUSTOM_1_1,
            Payload.PARTIAL_UPDATE,
            Fill.NULL,
        ),
        # Inferred where the mode is missing: strategy before payload class, then whether there is an ordering field.
        (8, {STRATEGY: COMMIT_TIME_STRATEGY}, Rules.COMMIT_TIME, Payload.LATEST, Fill.NOTHING),
        (8, {STRATEGY: EVENT_TIME_STRATEGY}, Rules.EVENT_TIME, Payload.LATEST, Fill.NOTHING),
        (8, {PAYLOAD: Payload.LATEST.value}, Rules.COMMIT_TIME, Payload.LATEST, Fill.NOTHING),
        (
            8,
            {STRATEGY: PAYLOAD_STRATEGY, PAYLOAD: Payload.AWS_DMS.value},
            Rules.CUSTOM_1_0,
            Payload.AWS_DMS,
            Fill.NOTHING,
        ),
        (8, {}, Rules.EVENT_TIME, Payload.LATEST, Fill.NOTHING),
        (8, {"hoodie__table__precombine__field": None}, Rules.COMMIT_TIME, Payload.LATEST, Fill.NOTHING),
        (9, {MODE: "CUSTOM"}, Rules.CUSTOM_1_1, Payload.DEFAULT, Fill.NOTHING),
        (
            9,
            {MODE: "COMMIT_TIME_ORDERING", PARTIAL: "IGNORE_DEFAULTS"},
            Rules.COMMIT_TIME,
            Payload.LATEST,
            Fill.REFERENCE_DEFAULT,
        ),
        (9, {MODE: "EVENT_TIME_ORDERING", PARTIAL: "FILL_UNAVAILABLE"}, Rules.EVENT_TIME, Payload.LATEST, Fill.MARKER),
        (9, {PARTIAL: "KEEP_VALUES"}, Rules.EVENT_TIME, Payload.LATEST, Fill.NOTHING),
        # Partial update modes came with version 9.
        (8, {PARTIAL: "IGNORE_DEFAULTS"}, Rules.EVENT_TIME, Payload.LATEST, Fill.NOTHING),
        # A version 6 table that Hudi 1.x keeps: payload class before strategy.
        (
            6,
            {STRATEGY: EVENT_TIME_STRATEGY, PAYLOAD: Payload.LATEST.value},
            Rules.COMMIT_TIME,
            Payload.LATEST,
            Fill.NOTHING,
        ),
        (6, {STRATEGY: EVENT_TIME_STRATEGY}, Rules.EVENT_TIME, Payload.LATEST, Fill.NOTHING),
        (
            6,
            {STRATEGY: PAYLOAD_STRATEGY, PAYLOAD: Payload.PARTIAL_UPDATE.value},
            Rules.CUSTOM_1_0,
            Payload.PARTIAL_UPDATE,
            Fill.NULL,
        ),
        (6, {MODE: "COMMIT_TIME_ORDERING"}, Rules.COMMIT_TIME, Payload.LATEST, Fill.NOTHING),
    ],
)
def test_merge_modes(
    version: int, properties: dict[str, str | None], rules: Rules, payload: Payload, fill: Fill
) -> None:
    policy = MergePolicy.for_table(config(version, **properties))
    assert (policy.rules, policy.payload, policy.fill) == (rules, payload, fill)
    assert policy.is_hudi_1
    assert policy.delete_marks[:2] == (FLAG, OPERATION)
    assert from_text(MergePolicy, to_text(policy)) == policy


@pytest.mark.parametrize(
    ("version", "properties", "error", "named"),
    [
        (6, {PAYLOAD: "com.example.MyPayload"}, UnsupportedError, r"com\.example\.MyPayload.*register_merger"),
        (8, {MODE: "CUSTOM", PAYLOAD: "com.example.MyPayload"}, UnsupportedError, r"com\.example\.MyPayload"),
        (
            8,
            {MODE: "CUSTOM", STRATEGY: "11111111-0000-0000-0000-000000000000"},
            UnsupportedError,
            "11111111-.*register_merger",
        ),
        (8, {STRATEGY: "11111111-0000-0000-0000-000000000000"}, UnsupportedError, "11111111-"),
        (6, {STRATEGY_0_15: "11111111-0000-0000-0000-000000000000"}, UnsupportedError, "11111111-.*register_merger"),
        (6, {STRATEGY_0_15: COMMIT_TIME_STRATEGY}, UnsupportedError, "merger class"),
        (
            6,
            {MODE: "COMMIT_TIME_ORDERING", STRATEGY_0_15: "11111111-0000-0000-0000-000000000000"},
            UnsupportedError,
            "11111111-.*register_merger",
        ),
        (9, {MODE: "SOMETIME_ORDERING"}, ConfigError, "SOMETIME_ORDERING"),
        (9, {PARTIAL: "SOME"}, UnsupportedError, "SOME"),
        (6, {PAYLOAD: Payload.POSTGRES.value}, UnsupportedError, "_event_lsn"),
        (8, {MODE: "CUSTOM", PAYLOAD: Payload.POSTGRES.value}, UnsupportedError, "_event_lsn"),
        (
            6,
            {"hoodie__populate__meta__fields": "false", "hoodie__table__recordkey__fields": None},
            UnsupportedError,
            "record key fields",
        ),
    ],
)
def test_other_merges_are_refused_by_name(
    version: int, properties: dict[str, str | None], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        MergePolicy.for_table(config(version, **properties))


@pytest.mark.parametrize("strategy", [None, "", EVENT_TIME_STRATEGY])
def test_the_strategy_that_0_15_writes_leaves_the_payload_class(strategy: str | None) -> None:
    assert MergePolicy.for_table(config(**{STRATEGY_0_15: strategy})).rules is Rules.PAYLOAD_0_15


@pytest.mark.parametrize(
    "name", ["hoodie.datasource.write.record.merger.strategy", "hoodie.compaction.record.merger.strategy"]
)
def test_a_merger_class_of_the_options_of_version_6(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{name} is 11111111-0.*register_merger"):
        MergePolicy.for_table(config(), {name: "11111111-0000-0000-0000-000000000000"})
    assert MergePolicy.for_table(config(), {name: EVENT_TIME_STRATEGY}) == MergePolicy.for_table(config())


def test_a_version_6_table_of_1_x_may_have_any_strategy_of_hudi_under_the_older_name() -> None:
    for strategy in (EVENT_TIME_STRATEGY, COMMIT_TIME_STRATEGY, PAYLOAD_STRATEGY):
        table = config(**{MODE: "EVENT_TIME_ORDERING", STRATEGY_0_15: strategy})
        assert MergePolicy.for_table(table).rules is Rules.EVENT_TIME


def test_delete_marker_of_0_15_needs_the_default_payload_and_replaces_the_flag() -> None:
    default = config(**{PAYLOAD: Payload.DEFAULT.value})
    policy = MergePolicy.for_table(default, {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"})
    assert policy.delete_marks == (OPERATION_0_15, DeleteMark("op", ("D",)))
    with pytest.raises(ConfigError, match=r"hoodie\.payload\.delete\.marker"):
        MergePolicy.for_table(default, {"hoodie.payload.delete.field": "op"})
    assert MergePolicy.for_table(config(), {"hoodie.payload.delete.field": "op"}).delete_marks == (FLAG, OPERATION_0_15)


def test_delete_marker_of_1_x_is_looked_for_beside_the_flag() -> None:
    options = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    assert MergePolicy.for_table(config(8), options).delete_marks == (FLAG, OPERATION, DeleteMark("op", ("D",)))
    for missing in options:
        with pytest.raises(ConfigError, match="is set without"):
            MergePolicy.for_table(config(8), {key: value for key, value in options.items() if key != missing})


def test_merge_properties_of_the_table_go_before_options() -> None:
    prefix = "hoodie__record__merge__property__"
    table = config(
        9,
        **{PARTIAL: "FILL_UNAVAILABLE"},
        **{
            f"{prefix}hoodie__payload__delete__field": "Op",
            f"{prefix}hoodie__payload__delete__marker": "D",
            f"{prefix}hoodie__write__partial__update__unavailable__value": TOASTED_VALUE,
        },
    )
    policy = MergePolicy.for_table(table, {"hoodie.payload.delete.marker": "X"})
    assert policy.delete_marks[-1] == DeleteMark("Op", ("D",))
    assert policy.fill_marker == TOASTED_VALUE


def test_payload_classes_that_know_deletes_by_a_column() -> None:
    assert MergePolicy.for_table(config(**{PAYLOAD: Payload.AWS_DMS.value})).delete_marks[-1] == DeleteMark(
        "Op", ("D",), any_case=True
    )
    postgres = config(
        8, **{MODE: "CUSTOM", PAYLOAD: Payload.POSTGRES.value}, hoodie__table__precombine__field="_event_lsn"
    )
    assert MergePolicy.for_table(postgres).delete_marks[-1] == DeleteMark(
        "_change_operation_type", ("d",), any_case=True
    )


def test_fields_filled_in_by_the_postgres_class_are_lost_from_hudi_1_1_on() -> None:
    properties = {MODE: "CUSTOM", PAYLOAD: Payload.POSTGRES.value, "hoodie__table__precombine__field": "_event_lsn"}
    assert MergePolicy.for_table(config(8, **properties)).fill is Fill.MARKER
    later = MergePolicy.for_table(config(8, **properties, hoodie__table__ordering__fields="_event_lsn"))
    assert (later.rules, later.fill, later.fill_marker) == (Rules.CUSTOM_1_1, Fill.NOTHING, None)


def test_keys_without_meta_columns_are_the_key_fields() -> None:
    bare = config(hoodie__populate__meta__fields="false", hoodie__table__recordkey__fields="id,sub")
    assert MergePolicy.for_table(bare).key_fields == ("id", "sub")


def test_a_function_is_chosen_by_the_option_alone() -> None:
    policy = MergePolicy.for_table(
        config(8, **{MODE: "CUSTOM", PAYLOAD: "com.example.MyPayload"}), {"airflow_hudi.merge.function": "mine"}
    )
    assert (policy.rules, policy.function, policy.whole_rows) == (Rules.FUNCTION, "mine", True)
    assert from_text(MergePolicy, to_text(policy)) == policy
    assert MergePolicy.for_table(config(hoodie__x="1", airflow_hudi__merge__function="mine")).function is None
