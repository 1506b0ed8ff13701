"""Damaged and hostile bytes: every codec answers with a typed error that names the file, in bounded time and memory.

`make test` runs 300 inputs a codec, `make soak` 200,000 (AIRFLOW_HUDI_FUZZ_INPUTS). A failure's input is made again
by `tests.fuzz.worker.input_of(name, seed, index, seeds)`.
"""

from __future__ import annotations

from random import Random

import pytest

from hudi_core.errors import CorruptFileError
from tests.fuzz.mutate import mutated
from tests.fuzz.run import NAMES, Report, asked_inputs, run_target
from tests.fuzz.structured import mutated_json
from tests.fuzz.target import Target, target_of
from tests.fuzz.targets import CODECS
from tests.fuzz.worker import input_of, run_one

SEED = 20261121
NEVER_REFUSES = {"names"}
"""Its parsers are asked one by one, and refusing is one of the answers looked at."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_only_typed_errors_in_bounded_time_and_memory(name: str) -> None:
    report = run_target(name, asked_inputs(), SEED)
    assert report.failures == []
    assert report.ends["failed"] == 0
    assert sum(report.ends.values()) == report.inputs
    assert report.ends["accepted"] > 0, "no input got through: the target does not decode anything"
    assert name in NEVER_REFUSES or report.inputs > report.ends["accepted"], "no input was refused: nothing is checked"


def test_every_codec_is_in_the_list() -> None:
    assert sorted(NAMES) == sorted([*CODECS, "table"])


@pytest.mark.parametrize("name", sorted(CODECS))
def test_an_input_is_made_again_from_its_number(name: str) -> None:
    seeds = list(target_of(name).seeds())
    numbers = range(len(seeds), len(seeds) + 20)
    first = [input_of(name, SEED, index, seeds) for index in numbers]
    assert first == [input_of(name, SEED, index, seeds) for index in numbers]
    assert len(set(first)) > 10


def test_the_harness_sees_what_it_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(error: BaseException) -> Target:
        def run(_: bytes) -> None:
            raise error

        return Target(lambda: [b""], run)

    hidden = CorruptFileError("x", path="f")
    hidden.__cause__ = MemoryError()
    assert run_one(fails(ValueError("x")), b"").startswith("!ValueError")
    assert run_one(fails(CorruptFileError("x")), b"").startswith("!the error names no file")
    assert run_one(fails(hidden), b"").startswith("!an allocation")
    assert run_one(fails(CorruptFileError("x", path="f")), b"") == "CorruptFileError"
    assert run_one(Target(lambda: [b""], lambda _: None), b"") == "accepted"


def test_mutations_differ_from_their_seeds() -> None:
    seeds = [bytes(range(256)) * 4]
    assert sum(mutated(seeds, Random(index)) != seeds[0] for index in range(200)) > 180
    documents = [b'{"a": [1, {"b": "c"}]}']
    assert len({mutated_json(documents, Random(index)) for index in range(200)}) > 100


def test_a_worker_that_crashes_is_a_failure_of_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.run.target_of", lambda name: Target(lambda: [b""], lambda _: None))
    report = run_target("no such target", 5, SEED)
    assert isinstance(report, Report)
    assert report.ends["failed"] == 1
    assert "KeyError" in report.failures[0]["what"]
