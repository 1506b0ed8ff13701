"""The model's rows, from writes alone; no table and no JVM."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import pytest

from tests.torture.generate import WRITERS, program
from tests.torture.model import DELETED, Effect, Model, key_of, partition_of
from tests.torture.predicates import Predicate, Term, predicates
from tests.torture.program import Command, Program, Service, TableShape, Write, from_json

SHAPE = TableShape(True, False, 2, False, (), {})


def made(*writes: Write, shape: TableShape = SHAPE) -> Model:
    """The model after the writes; the instant of each is its number."""
    model = Model(shape)
    for write in writes:
        model.effects.append(model.effect_of(write, f"{write.number:03d}"))
    return model


def values(model: Model, column: str, upto: str | None = None) -> dict[str, object]:
    return {key: row.get(column) for key, (row, _) in model.state(upto).rows.items()}


def of(*numbers: int) -> set[str]:
    return set(map(key_of, numbers))


def test_an_upsert_replaces_and_adds() -> None:
    model = made(Write("insert", 1, (0, 1, 2)), Write("upsert", 2, (1, 3)))
    assert values(model, "ts") == {"k0000": 1000, "k0001": 2000, "k0002": 1000, "k0003": 2000}
    assert values(model, "ts", "001") == {"k0000": 1000, "k0001": 1000, "k0002": 1000}
    assert {key: instant for key, (_, instant) in model.state().rows.items()}["k0001"] == "002"


@pytest.mark.parametrize(("event_time", "kept"), [(True, 1000), (False, 2000)])
def test_a_late_row_loses_by_event_time_alone(event_time: bool, kept: int) -> None:
    shape = dataclasses.replace(SHAPE, event_time=event_time)
    model = made(Write("insert", 1, (0,)), Write("upsert", 2, (0,), late=(0,)), shape=shape)
    assert values(model, "ts") == {"k0000": kept}
    written = Model(shape, model.effects[:1]).rows_to_write(Write("upsert", 2, (0,), late=(0,)))
    assert written["ts"].to_pylist() == [999 if event_time else 2000]


def test_a_late_row_of_a_key_that_is_gone_is_new() -> None:
    shape = dataclasses.replace(SHAPE, event_time=True)
    model = made(Write("insert", 1, (0,)), Write("delete", 2, (0,)), Write("upsert", 3, (0,), late=(0,)), shape=shape)
    assert values(model, "ts") == {"k0000": 3000}


def test_deletes() -> None:
    assert set(values(made(Write("insert", 1, (0, 1)), Write("delete", 2, (1, 5))), "id")) == of(0)
    soft = dataclasses.replace(SHAPE, soft_deletes=True)
    model = made(Write("insert", 1, (0, 1)), Write("upsert", 2, (0, 1), dropped=(1,)), shape=soft)
    assert set(values(model, "id")) == of(0)
    assert values(model, DELETED) == {"k0000": False}


def test_overwrites_and_dropped_partitions() -> None:
    first = Write("insert", 1, tuple(range(10)))
    here = {number for number in range(10) if partition_of(number, SHAPE) == "p0"}
    (one, *_), there = sorted(here), set(range(10)) - here
    overwritten = made(first, Write("insert_overwrite", 2, (one,)))
    assert set(values(overwritten, "id")) == of(one, *there)
    assert set(values(made(first, Write("delete_partition", 2, (one,))), "id")) == of(*there)
    assert set(values(made(first, Write("insert_overwrite_table", 2, (one, 20))), "id")) == of(one, 20)


def test_what_is_removed_is_as_if_it_had_never_been() -> None:
    model = made(Write("insert", 1, (0, 1)), Write("delete_partition", 2, (0,)), Write("upsert", 3, (1,)))
    model.remove(["002"])
    assert set(values(model, "id")) == of(0, 1)
    assert model.instants() == ["001", "003"]


def test_a_column_that_is_added_is_null_in_older_rows() -> None:
    model = made(Write("insert", 1, (0, 1)), Write("upsert", 2, (1,), evolution="add_column"))
    (name,) = set(model.state().names) - set(model.state("001").names)
    assert values(model, name) == {"k0000": None, "k0001": "added 2"}
    assert model.rows_to_write(Write("upsert", 3, (0,)))[name].to_pylist() == ["added 3"]
    model.remove(["002"])
    assert name not in model.state().names


def test_predicates_mean_what_they_say() -> None:
    model = Model(SHAPE)
    rows = tuple({"id": f"k{number}", "amount": number or None, "name": "x"} for number in range(4))
    model.effects.append(Effect("1", tuple(Model(SHAPE).state().columns), rows))
    state = model.state()

    def chosen(*terms: Term) -> list[object]:
        return [row["id"] for row in Predicate(terms).rows(state)]

    assert chosen(Term("amount", ">=", 2)) == ["k2", "k3"]
    assert chosen(Term("amount", "<", 9), Term("id", "IN", ("k0", "k1"))) == ["k1"]
    assert chosen(Term("amount", "IS NULL")) == ["k0"]
    assert chosen(Term("amount", "IS NOT NULL"), Term("name", "=", "x")) == ["k1", "k2", "k3"]
    assert Predicate((Term("id", "IN", ("a", "b")), Term("rate", "<", 1.5))).text == "id IN ('a', 'b') AND rate < 1.5D"
    assert len({predicate.text for predicate in predicates(random.Random(1), state, 30)}) > 15


@pytest.mark.parametrize("version", WRITERS)
def test_a_seed_makes_the_same_program_which_travels_as_json(version: str) -> None:
    first = program(version, 7)
    assert first == program(version, 7)
    assert first != program(version, 8)
    assert from_json(first.to_json()) == first


def test_programs_have_every_step() -> None:
    made: list[Program] = [program(version, seed) for version in WRITERS for seed in range(40)]
    steps: Sequence[object] = [step for item in made for step in item.steps]
    assert len({step.verb for step in steps if isinstance(step, Command)}) == 25
    assert len({step.service for step in steps if isinstance(step, Service)}) == 11
    assert len({step.operation for step in steps if isinstance(step, Write)}) == 7
    ours = [step for step in steps if isinstance(step, Write) and step.ours]
    assert len({step.operation for step in ours}) == 7
    assert {step.fault for step in ours} == {"", "kill", "error"}
    assert {(item.version, item.writer) for item in made} == {
        (version, writer) for version, writers in WRITERS.items() for writer in writers
    }
    by_hudi = [step for item in made for step in item.without_ours().steps]
    assert not any(isinstance(step, Command) or (isinstance(step, Write) and step.ours) for step in by_hudi)
