"""Log merge and base merge against the reference, for every rule; keys, delete marks and errors."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.config.rows_config import Payload
from hudi_core.errors import ConfigError, CorruptFileError, UnsupportedError
from hudi_core.filegroup.merge.base_merge import SliceMerge
from hudi_core.filegroup.merge.log_merge import LogMerger, merge_columns
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import FILL_OF, DeleteMark, Fill, MergePolicy, Rules
from tests.support.reference_merge import DEFAULTS, MARKER, Reference, Row, Version, entry, record
from tests.support.tiers import tiered

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "_hoodie_commit_time", "type": ["null", "string"], "default": None},
        {"name": "key", "type": "string"},
        {"name": "ordering", "type": ["null", "long"], "default": None},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "level", "type": "int", "default": DEFAULTS["level"]},
        {"name": "wide", "type": "long", "default": DEFAULTS["wide"]},
        {"name": "label", "type": "string", "default": DEFAULTS["label"]},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}], "default": None},
        {"name": "_hoodie_is_deleted", "type": ["null", "boolean"], "default": None},
    ],
}
SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("key", pa.string()),
        ("ordering", pa.int64()),
        ("note", pa.string()),
        ("level", pa.int32()),
        ("wide", pa.int64()),
        ("label", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
MARKS = (DeleteMark("_hoodie_is_deleted", ("true",)),)


def policy(
    rules: Rules = Rules.PAYLOAD_0_15, payload: Payload = Payload.LATEST, fill: Fill | None = None
) -> MergePolicy:
    """The policy of a table with the schema above."""
    chosen = FILL_OF.get(payload, Fill.NOTHING) if fill is None else fill
    if rules is Rules.CUSTOM_1_1 and payload is Payload.POSTGRES:
        chosen = Fill.NOTHING
    return MergePolicy(
        ("key",), ("ordering",), rules, payload, chosen, MARKER if chosen is Fill.MARKER else None, MARKS
    )


_CUSTOM = [
    policy(rules, payload) for rules in (Rules.PAYLOAD_0_15, Rules.CUSTOM_1_0, Rules.CUSTOM_1_1) for payload in Payload
]
_MODES = [
    policy(rules, fill=fill)
    for rules in (Rules.COMMIT_TIME, Rules.EVENT_TIME)
    for fill in (Fill.NOTHING, Fill.REFERENCE_DEFAULT, Fill.MARKER)
]
POLICIES = [*_CUSTOM, *_MODES]


def batch(rows: list[Row]) -> pa.RecordBatch:
    """Rows as a batch."""
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def row(
    key: str, ordering: int | None, tag: int, flagged: bool | None = False, note: str | None = None, level: int = 1
) -> Row:
    """A row that `tag` distinguishes from others of its key."""
    return {
        "_hoodie_commit_time": f"{tag:03d}",
        "key": key,
        "ordering": ordering,
        "note": note,
        "level": level,
        "wide": DEFAULTS["wide"] if tag % 2 else tag,
        "label": DEFAULTS["label"] if tag % 5 == 0 else str(tag),
        "tags": [str(tag)] if tag % 3 else None,
        "_hoodie_is_deleted": flagged,
    }


COUNTS = ("updated", "kept", "deleted", "inserted", "missed_deletes")
KEYS = st.sampled_from(["a", "b", "c", "d", "é", ""])
NOTES = st.sampled_from([None, "x", "y", MARKER])
LEVELS = st.sampled_from([1, 2, DEFAULTS["level"]])


@st.composite
def versions(draw: st.DrawFn, *, nulls: bool) -> Version:
    key, tag = draw(KEYS), draw(st.integers(0, 99))
    ordering = draw(st.integers(0, 3) | st.none() if nulls else st.integers(0, 3))
    flagged = draw(st.sampled_from([False, False, True, None]))
    return record(key, ordering, row(key, ordering, tag, flagged, draw(NOTES), draw(LEVELS)), flagged is True)


@st.composite
def partials(draw: st.DrawFn, columns: frozenset[str]) -> Version:
    whole = draw(versions(nulls=False))
    assert whole.row is not None
    kept = {name: value if name in columns else None for name, value in whole.row.items()}
    return replace(whole, row=kept, columns=columns, deleted=kept["_hoodie_is_deleted"] is True)


def entries() -> st.SearchStrategy[Version]:
    return st.builds(entry, KEYS, st.none() | st.integers(-1, 4))


@st.composite
def blocks(draw: st.DrawFn, rules: MergePolicy) -> list[list[Version]]:
    """Blocks of one kind each: records, delete entries, and partial updates where the rules know them."""
    found = []
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["rows", "rows", "deletes", "partial"]))
        if kind == "deletes":
            found.append(draw(st.lists(entries(), max_size=4)))
        elif kind == "partial" and rules.rules in (Rules.COMMIT_TIME, Rules.EVENT_TIME) and rules.fill is Fill.NOTHING:
            columns = frozenset(
                {"_hoodie_commit_time", "key", "ordering"} | draw(st.sets(st.sampled_from(["note", "level", "tags"])))
            )
            found.append(draw(st.lists(partials(columns), max_size=5)))
        else:
            found.append(draw(st.lists(versions(nulls=rules.is_hudi_1), max_size=6)))
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[MergePolicy, list[list[Version]], list[Row]]:
    rules = draw(st.sampled_from(POLICIES))
    base = draw(st.lists(st.tuples(KEYS, st.none() | st.integers(0, 3), NOTES, LEVELS), max_size=10))
    rows = [
        row(key, ordering, index, note=note, level=level) for index, (key, ordering, note, level) in enumerate(base)
    ]
    return rules, draw(blocks(rules)), rows


def run(
    rules: MergePolicy,
    blocks: list[list[Version]],
    base: list[Row],
    *,
    budget: int = 1 << 20,
    group: int = 1,
    first_only: bool = False,
) -> tuple[list[Row], Any]:
    """The engine's merge of the same blocks and base rows."""
    ordering = Ordering.of(rules, AVRO, path="p")
    merger = LogMerger(SCHEMA, rules, ordering, budget=budget)
    for block in blocks:
        rows = [version for version in block if version.row is not None]
        if rows:
            merger.add_records(
                batch([version.row for version in rows if version.row is not None]), path="log", partial=rows[0].columns
            )
        deletes = [version for version in block if version.row is None]
        if deletes:
            natural, values = ordering.of_deletes(
                pa.table({"long": pa.array([version.ordering for version in deletes], pa.int64())})
            )
            merger.add_deletes(pa.array([version.key for version in deletes]), natural, values, path="log")
    with closing(merger.store):
        records = merger.finish()
        applied = SliceMerge(records, rules, ordering, path="base", budget=1 << 30, first_only=first_only)
        batches = [batch(base[start : start + 3]) for start in range(0, len(base), 3)]
        found = []
        for start in range(0, len(batches), group):
            for merged in applied.merged(batches[start : start + group], group_rows=len(base) + 1):
                found += merged.to_pylist()
        for merged in applied.inserts(2):
            found += merged.to_pylist()
    return found, applied.counts


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(case=cases(), budget=st.sampled_from([1, 200, 1 << 20]), group=st.integers(1, 3))
def test_merge_equals_the_reference(
    case: tuple[MergePolicy, list[list[Version]], list[Row]], budget: int, group: int
) -> None:
    rules, blocks, base = case
    reference = Reference(rules)
    requested = reference.merge(base, reference.fold(version for block in blocks for version in block))
    found, counts = run(rules, blocks, base, budget=budget, group=group)
    assert found == requested.rows, "rows and their order"
    assert counts.written == len(requested.rows)
    assert {name: getattr(counts, name) for name in COUNTS} == {name: getattr(requested, name) for name in COUNTS}


@pytest.mark.parametrize(
    "rules", POLICIES, ids=lambda rules: f"{rules.rules.value}-{rules.payload.name}-{rules.fill.name}"
)
@pytest.mark.parametrize("count", tiered([150, 600], [150]))
def test_merge_of_many_keys_equals_the_reference(rules: MergePolicy, count: int) -> None:
    """Hypothesis finds the corners; this, with many keys of up to eight versions each, finds what needs three or four
    versions in one order.
    """
    dice = random.Random(rules.rules.value + rules.payload.name + rules.fill.name)

    def version(key: str, columns: frozenset[str] | None) -> Version:
        ordering = None if rules.is_hudi_1 and dice.random() < 0.1 else dice.randrange(-2, 3)
        flagged = dice.choice([False, False, False, True, None])
        whole = row(
            key,
            ordering,
            dice.randrange(100),
            flagged,
            dice.choice([None, "x", "y", MARKER]),
            dice.choice([1, 2, DEFAULTS["level"]]),
        )
        if columns is None:
            return record(key, ordering, whole, flagged is True)
        kept = {name: value if name in columns else None for name, value in whole.items()}
        return record(key, ordering, kept, kept["_hoodie_is_deleted"] is True, columns)

    keys = [f"k{number}" for number in range(count)]
    blocks = []
    for number in range(8):
        some = dice.sample(keys, count * 7 // 12)
        if number % 4 == 2:
            blocks.append([entry(key, dice.choice([None, -2, -1, 0, 1, 2, 3])) for key in some[: count // 5]])
        partial = (
            rules.rules in (Rules.COMMIT_TIME, Rules.EVENT_TIME) and rules.fill is Fill.NOTHING and number % 3 == 1
        )
        columns = frozenset(
            {"_hoodie_commit_time", "key", "ordering", *dice.sample(["note", "level", "tags", "_hoodie_is_deleted"], 2)}
        )
        blocks.append([version(key, columns if partial else None) for key in some])
    base = [
        row(key, dice.choice([None, -2, -1, 0, 1, 2]), 0, note=dice.choice([None, "b"]), level=dice.choice([3, 4]))
        for key in keys[: count * 3 // 4]
    ]
    reference = Reference(rules)
    requested = reference.merge(base, reference.fold(item for block in blocks for item in block))
    found, counts = run(rules, blocks, base, group=50)
    assert found == requested.rows
    assert {name: getattr(counts, name) for name in COUNTS} == {name: getattr(requested, name) for name in COUNTS}
    happened = (requested.updated, requested.deleted, requested.inserted, requested.missed_deletes)
    assert all(happened)


def test_several_base_rows_of_one_key_are_all_replaced() -> None:
    found, counts = run(policy(), [[record("a", 1, row("a", 1, 7))]], [row("a", 0, 1), row("b", 0, 2), row("a", 0, 3)])
    assert Counter(item["key"] for item in found) == {"a": 2, "b": 1}
    assert counts.updated == 2


@pytest.mark.parametrize("group", [1, 3])
def test_a_reader_merges_the_first_base_row_of_a_key_alone(group: int) -> None:
    """As real Hudi's readers do: tests/torture/test_random_tables.py finds it."""
    base = [row("a", 0, 1), row("b", 0, 2), row("a", 0, 3), row("c", 0, 4), row("a", 0, 5), row("c", 0, 6)]
    logs = [[record("a", 1, row("a", 1, 7)), record("d", 1, row("d", 1, 8))], [entry("c", 1)]]
    found, counts = run(policy(), logs, base, group=group, first_only=True)
    assert [(item["key"], int(item["_hoodie_commit_time"])) for item in found] == [
        ("a", 7),
        ("b", 2),
        ("a", 3),
        ("a", 5),
        ("c", 6),
        ("d", 8),
    ]
    assert (counts.updated, counts.deleted, counts.inserted, counts.missed_deletes) == (1, 1, 1, 0)


def test_many_versions_of_many_keys_are_merged_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudi_core.filegroup.merge.row_merge._ROWS", 7)
    rules = policy(Rules.CUSTOM_1_1, Payload.PARTIAL_UPDATE)
    blocks = [
        [record(str(key), tag, row(str(key), tag, tag, note=None if tag % 2 else str(tag))) for key in range(50)]
        for tag in range(1, 6)
    ]
    found, _ = run(rules, blocks, [row(str(key), 0, 0) for key in range(50)])
    reference = Reference(rules)
    requested = reference.merge(
        [row(str(key), 0, 0) for key in range(50)], reference.fold(version for block in blocks for version in block)
    )
    assert found == requested.rows


def test_null_ordering_value_is_refused_by_the_rules_of_0_15() -> None:
    merger = LogMerger(SCHEMA, policy(), Ordering.of(policy(), AVRO, path="p"), budget=1 << 20)
    with pytest.raises(ConfigError, match="ordering"):
        merger.add_records(batch([row("a", None, 1)]), path="log-7")


@pytest.mark.parametrize(
    "rules", [policy(Rules.EVENT_TIME, fill=Fill.MARKER), policy(Rules.CUSTOM_1_1, Payload.NON_DEFAULTS)]
)
def test_partial_blocks_where_fields_give_way_already_are_refused(rules: MergePolicy) -> None:
    merger = LogMerger(SCHEMA, rules, Ordering.of(rules, AVRO, path="p"), budget=1 << 20)
    with pytest.raises(UnsupportedError, match=r"log-7.*partial-update block"):
        merger.add_records(batch([row("a", 1, 1)]), path="log-7", partial=frozenset({"key"}))


def test_text_deletes_win_by_the_rules_of_1_0_and_are_compared_by_those_of_1_1() -> None:
    """A Utf8 and a String have no common order in Hudi 1.0, so the entry wins; what comes after it compares with it."""
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "key", "type": "string"}, {"name": "ordering", "type": "string"}],
    }
    schema = pa.schema([("key", pa.string()), ("ordering", pa.string())])
    for deletes_win, last, left in ((True, "b", 0), (True, "d", 1), (False, "b", 1)):
        rules = replace(policy(Rules.EVENT_TIME), string_deletes_win=deletes_win)
        ordering = Ordering.of(rules, avro, path="p")
        merger = LogMerger(schema, rules, ordering, budget=1 << 20)
        merger.add_records(pa.RecordBatch.from_pylist([{"key": "k", "ordering": "z"}], schema=schema), path="log")
        natural, values = ordering.of_deletes(pa.table({"string": ["c"]}))
        assert natural.tolist() == [False]
        merger.add_deletes(pa.array(["k"]), natural, values, path="log")
        merger.add_records(pa.RecordBatch.from_pylist([{"key": "k", "ordering": last}], schema=schema), path="log")
        with closing(merger.store):
            assert list(merger.finish().kinds).count(0) == left


@pytest.mark.parametrize(("kind", "values", "left"), [("string", ["z", "a"], "a"), ("long", [9, 1], 9)])
def test_partial_update_payload_of_hudi_1_compares_values_of_one_class_only(
    kind: str, values: list[Any], left: Any
) -> None:
    """PartialUpdateAvroPayload.isRecordNewer has a Utf8 from Avro and a UTF8String from Spark, so text is never newer;
    longs are compared.
    """
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "key", "type": "string"}, {"name": "ordering", "type": kind}],
    }
    schema = pa.schema([("key", pa.string()), ("ordering", pa.string() if kind == "string" else pa.int64())])
    for rules in (Rules.CUSTOM_1_0, Rules.CUSTOM_1_1):
        merging = policy(rules, Payload.PARTIAL_UPDATE)
        ordering = Ordering.of(merging, avro, path="p")
        merger = LogMerger(schema, merging, ordering, budget=1 << 20)
        for value in values:
            merger.add_records(pa.RecordBatch.from_pylist([{"key": "k", "ordering": value}], schema=schema), path="log")
        with closing(merger.store):
            assert merger.finish().take(np.array([0])).to_pylist() == [{"key": "k", "ordering": left}]


def test_columns_that_a_merge_looks_at() -> None:
    rules = replace(policy(Rules.EVENT_TIME), delete_marks=(*MARKS, DeleteMark("op", ("D",))))
    assert merge_columns(rules, Ordering.of(rules, AVRO, path="p")) == {"key", "ordering", "_hoodie_is_deleted", "op"}
    assert not rules.whole_rows


def test_a_broken_key_names_its_file() -> None:
    merger = LogMerger(SCHEMA, policy(), Ordering.of(policy(), AVRO, path="p"), budget=1 << 20)
    with pytest.raises(CorruptFileError, match="log-7"):
        merger.add_records(batch([{**row("a", 1, 1), "key": None}]), path="log-7")
    with pytest.raises(CorruptFileError, match="log-8"):
        merger.add_deletes(
            pa.array([None], pa.string()),
            *Ordering.of(policy(), AVRO, path="p").of_deletes(pa.table({"long": [1]})),
            path="log-8",
        )


def test_nothing_to_merge() -> None:
    for rules in POLICIES:
        found, counts = run(rules, [], [row("a", 0, 1)], budget=1)
        assert found == [row("a", 0, 1)]
        assert (counts.base, counts.written) == (1, 1)
