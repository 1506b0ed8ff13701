"""One suite for the Engine port, over threads of this process, processes beside it, and Spark's tasks."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet

from hudi_core.engine.exchange import ROWS, exchange_rows
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine, TaskAttempt
from hudi_core.errors import (
    ConfigError,
    CorruptFileError,
    ExecutionError,
    HudiError,
    StorageError,
    StorageNotFoundError,
    UnsupportedVersionError,
)
from tests.contract.tasks_by_value import engine_for_tasks_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def processes() -> Iterator[LocalEngine]:
    with LocalEngine(processes=2) as engine:
        yield engine


def on_engines(cases: Sequence[Any], of_spark: Collection[Any]) -> list[ParameterSet]:
    """The cases on each engine. A failed task ends Spark's worker, and another one starts: in `make test` Spark meets
    those cases in which it could differ.
    """
    found = [(name, case) for name in ("local", "processes", "spark") for case in cases]
    return [
        pytest.param(
            name,
            *(case if isinstance(case, tuple) else (case,)),
            marks=pytest.mark.conformance if name == "spark" and case not in of_spark else (),
        )
        for name, case in found
    ]


@pytest.fixture(params=["local", "processes", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "local":
        yield LocalEngine(2)
        return
    if request.param == "processes":
        yield request.getfixturevalue("processes")
        return
    with engine_for_tasks_of(__name__, request.getfixturevalue("spark")) as of_spark:
        yield of_spark


@dataclass(frozen=True)
class Unit:
    n: int = 0
    text: str = ""
    ratio: float = 0.0
    flag: bool = False
    maybe: str | None = None
    folder: str = ""
    error: str | None = None
    document: dict[str, object] = field(default_factory=dict)
    names: tuple[tuple[str, ...], ...] = ()
    data: bytes = b""


@dataclass(frozen=True)
class Echo:
    n: int
    text: str
    ratio: float
    flag: bool
    maybe: str | None
    document: dict[str, object]
    names: tuple[tuple[str, ...], ...]
    data: bytes
    attempt: tuple[int, int, int]


@dataclass(frozen=True)
class Number:
    n: int


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Anything:
    result: object = None


@dataclass(frozen=True)
class Noted:
    shard: int
    name: str
    attempt: tuple[int, int]
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class First:
    first: str | None


def echo(unit: Unit, attempt: TaskAttempt) -> Echo:
    return Echo(
        unit.n,
        unit.text,
        unit.ratio,
        unit.flag,
        unit.maybe,
        unit.document,
        unit.names,
        unit.data,
        (attempt.partition_id, attempt.stage_id, attempt.attempt_id),
    )


def slow_first(unit: Unit, attempt: TaskAttempt) -> Number:
    time.sleep(0.5 if unit.n == 0 else 0)
    return Number(unit.n)


def spoil(unit: Unit, attempt: TaskAttempt) -> Anything:
    unit.document.pop("nested", None)
    return Anything(sorted(unit.document))


def leave_a_file(unit: Unit, attempt: TaskAttempt) -> Name:
    name = f"{unit.n}-{attempt.partition_id}-{attempt.stage_id}-{attempt.attempt_id}"
    (Path(unit.folder) / name).touch(exist_ok=False)
    return Name(name)


ERRORS: dict[str, HudiError] = {
    "config": ConfigError("an option is wrong", remedy="set it right"),
    "corrupt": CorruptFileError("cut short", path="city=a/f1.parquet", remedy="restore the file"),
    "version": UnsupportedVersionError("version 9", path=".hoodie/hoodie.properties"),
    "missing": StorageNotFoundError("not there", path="city=a/f1.parquet"),
    "storage": StorageError(
        'the disk said no\n\tin two lines: {"a": 1}', path="city=ä/f 1.parquet", remedy="look at the disk"
    ),
    "execution": ExecutionError("counts differ"),
}


def fail(unit: Unit, attempt: TaskAttempt) -> Anything:
    if unit.error is not None:
        raise ERRORS[unit.error]
    return Anything()


def break_down(unit: Unit, attempt: TaskAttempt) -> Number:
    return Number([1, 2, 3][unit.n])


def answer_nonsense(unit: Unit, attempt: TaskAttempt) -> Anything:
    return Anything(object())


def answer_another(unit: Unit, attempt: TaskAttempt) -> Number:
    return Name("x")  # type: ignore[return-value]


VALUES: dict[str, Any] = {
    "text": "zürich \u0000 \n",
    "ratio": 0.1,
    "flag": True,
    "maybe": None,
    "document": {"long": 2**53 + 1, "list": [1, [2, {}]], "nested": {"a": {"b": []}}},
    "names": (("a", ""), ()),
    "data": bytes(range(256)),
}


def test_units_arrive_whole_and_results_return_in_order(engine: Engine) -> None:
    units = [Unit(index, **VALUES) for index in range(5)] + [Unit(5)]
    results = engine.run(echo, units, run_epoch=7)
    assert [Unit(**{name: getattr(result, name) for name in ("n", *VALUES)}) for result in results] == units


def test_attempts_tell_partition_and_epoch_and_never_repeat(engine: Engine) -> None:
    first = engine.run(echo, [Unit(index) for index in range(4)], run_epoch=3)
    attempts = [result.attempt for result in first]
    assert [attempt[0] for attempt in attempts] == [0, 1, 2, 3]
    assert {attempt[1] for attempt in attempts} == {3}
    assert len(set(attempts)) == 4


def test_no_units_is_no_work(engine: Engine) -> None:
    assert engine.run(break_down, [], run_epoch=1) == []


def test_order_is_that_of_the_units_not_of_completion(engine: Engine) -> None:
    assert engine.run(slow_first, [Unit(n) for n in range(3)], run_epoch=1) == [Number(n) for n in range(3)]


def test_each_unit_runs_once(engine: Engine, tmp_path: Path) -> None:
    results = engine.run(leave_a_file, [Unit(index, folder=str(tmp_path)) for index in range(6)], run_epoch=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(result.name for result in results)


@pytest.mark.parametrize(("engine", "name"), on_engines(sorted(ERRORS), ["storage", "version"]), indirect=["engine"])
def test_a_task_error_returns_typed_with_file_and_remedy(engine: Engine, name: str) -> None:
    expected = ERRORS[name]
    with pytest.raises(HudiError) as caught:
        engine.run(fail, [Unit(), Unit(error=name), Unit()], run_epoch=1)
    found = caught.value
    assert type(found) is type(expected)
    assert (found.message, found.path, found.remedy) == (expected.message, expected.path, expected.remedy)
    assert found.exit_code == expected.exit_code


def test_a_defect_in_a_task_is_an_execution_error_that_names_it(engine: Engine) -> None:
    with pytest.raises(ExecutionError, match="IndexError: list index out of range"):
        engine.run(break_down, [Unit(0), Unit(3)], run_epoch=1)


def test_a_result_that_is_no_json_is_refused(engine: Engine) -> None:
    with pytest.raises(ExecutionError, match="TypeError: Object of type object is not JSON serializable"):
        engine.run(answer_nonsense, [Unit()], run_epoch=1)


def test_a_result_of_another_class_is_refused(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="a Number is not what this version writes"):
        engine.run(answer_another, [Unit()], run_epoch=1)


def test_an_engine_serves_again_after_a_failure(engine: Engine) -> None:
    with pytest.raises(ConfigError):
        engine.run(fail, [Unit(error="config")], run_epoch=1)
    assert engine.run(fail, [Unit()], run_epoch=2) == [Anything()]


def test_progress_only_grows_and_ends_at_the_number_of_units(engine: Engine) -> None:
    seen: list[tuple[int, int]] = []
    engine.run(
        slow_first,
        [Unit(index) for index in range(4)],
        run_epoch=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert {total for _, total in seen} == {4}
    assert seen[-1] == (4, 4)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_no_thread_stays_behind(engine: Engine) -> None:
    engine.run(echo, [Unit(1)], run_epoch=1)
    before = {thread.name for thread in threading.enumerate()}
    engine.run(echo, [Unit(index) for index in range(3)], run_epoch=1, progress=lambda done, total: None)
    assert {thread.name for thread in threading.enumerate()} <= before


def test_a_unit_is_not_shared_with_the_caller(engine: Engine) -> None:
    unit = Unit(document={"n": 1, "nested": {"a": 1}})
    assert engine.run(spoil, [unit], run_epoch=1) == [Anything(["n"])]
    assert unit == Unit(document={"n": 1, "nested": {"a": 1}})


SHARDS = 5
PREFIXES = (b"a", b"\x7f", b"\x80", b"\xff", b"")


def rows_of(unit: Unit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Keys of every first byte that order could get wrong, in no order; shard 3 gets none."""
    for part in range(3):
        keys = [
            PREFIXES[number * 7 % len(PREFIXES)] + f"{number * 7919 % 1000:04d}".encode()
            for number in range(part * 40, part * 40 + 40)
        ]
        shards = pa.array([(0, 1, 2, 4)[number % 4] for number in range(len(keys))], pa.int32())
        values = pa.array([f"{unit.n}:{key.hex()}".encode() for key in keys], pa.binary())
        yield exchange_rows(shards, pa.array(keys, pa.binary()), values)


def note_rows(folder: str, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Noted:
    name = f"{shard}-{attempt.partition_id}-{attempt.stage_id}-{attempt.attempt_id}"
    (Path(folder) / name).touch(exist_ok=False)
    rows = tuple(
        (key.hex(), value.decode())
        for batch in batches
        for key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    return Noted(shard, name, (attempt.partition_id, attempt.stage_id), rows)


def test_every_shard_gets_its_rows_in_the_order_of_key_bytes(engine: Engine, tmp_path: Path) -> None:
    units = [Unit(number) for number in range(6)]
    results = engine.exchange(rows_of, units, partial(note_rows, str(tmp_path)), shards=SHARDS, run_epoch=9)
    assert [result.shard for result in results] == list(range(SHARDS))
    assert [result.attempt for result in results] == [(shard, 9) for shard in range(SHARDS)]
    expected: dict[int, list[tuple[str, str]]] = {shard: [] for shard in range(SHARDS)}
    for unit in units:
        for batch in rows_of(unit, TaskAttempt(0, 0, 0)):
            for shard, key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                expected[shard].append((key.hex(), value.decode()))
    for result in results:
        keys = [key for key, _ in result.rows]
        assert keys == sorted(keys)
        assert sorted(result.rows) == sorted(expected[result.shard])
    assert results[3].rows == ()
    assert results[0].rows
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(result.name for result in results)


def test_shards_are_consumed_where_nothing_is_produced(engine: Engine, tmp_path: Path) -> None:
    results = engine.exchange(rows_of, [], partial(note_rows, str(tmp_path)), shards=3, run_epoch=1)
    assert [(result.shard, result.rows) for result in results] == [(0, ()), (1, ()), (2, ())]
    with pytest.raises(ValueError, match="at least one shard"):
        engine.exchange(rows_of, [], partial(note_rows, str(tmp_path)), shards=0, run_epoch=1)


def take_first(shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> First:
    first = next(batches, None)
    return First(None if first is None else first.column(0)[0].as_py().hex())


def test_a_consumer_need_not_read_all(engine: Engine) -> None:
    results = engine.exchange(rows_of, [Unit(1)], take_first, shards=SHARDS, run_epoch=1)
    assert [result.first is None for result in results] == [False, False, False, True, False]


def failing_rows(unit: Unit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    yield from rows_of(unit, attempt)
    if unit.error is not None:
        raise ERRORS[unit.error]


def failing_shard(name: str, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Anything:
    if shard == 1:
        raise ERRORS[name]
    return Anything()


@pytest.mark.parametrize(
    ("engine", "side", "name"),
    on_engines(
        [(side, name) for side in ("produce", "consume") for name in ("corrupt", "storage")],
        [("produce", "storage"), ("consume", "corrupt")],
    ),
    indirect=["engine"],
)
def test_errors_of_both_sides_of_an_exchange_return_typed(engine: Engine, side: str, name: str) -> None:
    expected = ERRORS[name]
    units = [Unit(1), Unit(2, error=name if side == "produce" else None)]
    with pytest.raises(HudiError) as caught:
        engine.exchange(failing_rows, units, partial(failing_shard, name), shards=SHARDS, run_epoch=1)
    found = caught.value
    assert type(found) is type(expected)
    assert (found.message, found.path, found.remedy) == (expected.message, expected.path, expected.remedy)


@dataclass(frozen=True)
class Shard:
    shard: int | None


def rows_of_no_shard(unit: Shard, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    number, key = pa.array([unit.shard], pa.int32()), pa.array([b"k"], pa.binary())
    if unit.shard is None:
        yield pa.RecordBatch.from_arrays([number, key, key], schema=ROWS)
    elif unit.shard == 0:
        yield pa.RecordBatch.from_arrays([number, key], names=["shard", "key"])
    else:
        yield exchange_rows(number, key, key)


@pytest.mark.parametrize(
    ("engine", "shard", "message"),
    on_engines(
        [(-1, "-1 to -1; there are 5"), (SHARDS, "5 to 5"), (None, "nulls"), (0, "another form")], [(SHARDS, "5 to 5")]
    ),
    indirect=["engine"],
)
def test_rows_of_another_form_are_refused(engine: Engine, shard: int | None, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        engine.exchange(rows_of_no_shard, [Shard(shard)], take_first, shards=SHARDS, run_epoch=1)


def test_progress_of_an_exchange_counts_units(engine: Engine) -> None:
    seen: list[tuple[int, int]] = []
    units = [Unit(number) for number in range(3)]
    engine.exchange(
        rows_of, units, take_first, shards=SHARDS, run_epoch=1, progress=lambda done, total: seen.append((done, total))
    )
    assert {total for _, total in seen} == {3}
    assert seen[-1] == (3, 3)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def once(folder: Path, name: str) -> None:
    """Fails the first attempt of each name."""
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return
    raise StorageError("the disk said no", path=name)


def rows_at_last(folder: str, unit: Unit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    yield from rows_of(unit, attempt)
    once(Path(folder), f"unit-{unit.n}")


def exchange_at_last(engine: Engine, folder: Path) -> None:
    """Every unit and every shard fails once; no row comes twice and none is missing."""
    results = engine.exchange(
        partial(rows_at_last, str(folder)),
        [Unit(0), Unit(1)],
        partial(note_after, str(folder)),
        shards=SHARDS,
        run_epoch=1,
    )
    assert [len(result.rows) for result in results] == [60, 60, 60, 0, 60]
    assert len({result.name for result in results}) == SHARDS


def note_after(folder: str, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Noted:
    result = note_rows(folder, shard, batches, attempt)
    once(Path(folder), f"shard-{shard}")
    return result


def test_failed_attempts_are_made_again_in_threads(tmp_path: Path) -> None:
    exchange_at_last(LocalEngine(2), tmp_path)


@pytest.mark.conformance
def test_failed_attempts_are_made_again_in_spark(tmp_path: Path, spark: Any) -> None:
    """In a process of its own: the tests' session tries no task twice, and a process has one session."""
    # The fixture is requested for the environment that it sets.
    script = Path(__file__).with_name("exchange_again.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == "ok"
