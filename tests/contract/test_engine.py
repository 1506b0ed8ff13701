"""One suite for the Engine port, over the threads of this process and over Spark's tasks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import (
    ConfigError,
    CorruptFileError,
    ExecutionError,
    HudiError,
    StorageError,
    StorageNotFoundError,
    UnsupportedVersionError,
)
from hudi_core.model.engine import Engine, Json, TaskAttempt
from hudi_core.services.local_engine import LocalEngine

pytestmark = pytest.mark.spark


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "local":
        yield LocalEngine(2)
        return
    spark = request.getfixturevalue("spark")
    from pyspark import cloudpickle

    from hudi_spark.engine import SparkEngine

    # Executors cannot import the tests, so this module's tasks travel by value; the engine's own code travels by reference.
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield SparkEngine(spark)
    cloudpickle.unregister_pickle_by_value(module)


def echo(unit: Json, attempt: TaskAttempt) -> Json:
    return {"unit": unit, "attempt": [attempt.partition_id, attempt.stage_id, attempt.attempt_id]}


def slow_first(unit: Json, attempt: TaskAttempt) -> Json:
    time.sleep(0.5 if unit["n"] == 0 else 0)
    return {"n": unit["n"]}


def spoil(unit: Json, attempt: TaskAttempt) -> Json:
    unit.pop("nested", None)
    return {"left": sorted(unit)}


def leave_a_file(unit: Json, attempt: TaskAttempt) -> Json:
    name = f"{unit['n']}-{attempt.partition_id}-{attempt.stage_id}-{attempt.attempt_id}"
    (Path(unit["folder"]) / name).touch(exist_ok=False)
    return {"name": name}


ERRORS: dict[str, HudiError] = {
    "config": ConfigError("an option is wrong", remedy="set it right"),
    "corrupt": CorruptFileError("cut short", path="city=a/f1.parquet", remedy="restore the file"),
    "version": UnsupportedVersionError("version 9", path=".hoodie/hoodie.properties"),
    "missing": StorageNotFoundError("not there", path="city=a/f1.parquet"),
    "storage": StorageError('the disk said no\n\tin two lines: {"a": 1}', path="city=ä/f 1.parquet", remedy="look at the disk"),
    "execution": ExecutionError("counts differ"),
}


def fail(unit: Json, attempt: TaskAttempt) -> Json:
    if "error" in unit:
        raise ERRORS[unit["error"]]
    return {}


def break_down(unit: Json, attempt: TaskAttempt) -> Json:
    return {"result": [1, 2, 3][unit["n"]]}


def answer_nonsense(unit: Json, attempt: TaskAttempt) -> Json:
    return {"result": object()}


VALUES: Json = {
    "text": "zürich \u0000 \n",
    "long": 2**53 + 1,
    "float": 0.1,
    "null": None,
    "flag": True,
    "list": [1, [2, {}]],
    "nested": {"a": {"b": []}},
}


def test_units_arrive_whole_and_results_return_in_order(engine: Engine) -> None:
    units = [{"n": index, **VALUES} for index in range(5)] + [{"n": 5}]
    results = engine.run(echo, units, run_epoch=7)
    assert [result["unit"] for result in results] == units


def test_attempts_tell_partition_and_epoch_and_never_repeat(engine: Engine) -> None:
    first = engine.run(echo, [{"n": index} for index in range(4)], run_epoch=3)
    attempts = [tuple(result["attempt"]) for result in first]
    assert [attempt[0] for attempt in attempts] == [0, 1, 2, 3]
    assert {attempt[1] for attempt in attempts} == {3}
    assert len(set(attempts)) == 4


def test_no_units_is_no_work(engine: Engine) -> None:
    assert engine.run(break_down, [], run_epoch=1) == []


def test_order_is_that_of_the_units_not_of_completion(engine: Engine) -> None:
    assert engine.run(slow_first, [{"n": 0}, {"n": 1}, {"n": 2}], run_epoch=1) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_each_unit_runs_once(engine: Engine, tmp_path: Path) -> None:
    results = engine.run(leave_a_file, [{"n": index, "folder": str(tmp_path)} for index in range(6)], run_epoch=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(result["name"] for result in results)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_a_task_error_returns_typed_with_file_and_remedy(engine: Engine, name: str) -> None:
    expected = ERRORS[name]
    with pytest.raises(HudiError) as caught:
        engine.run(fail, [{}, {"error": name}, {}], run_epoch=1)
    found = caught.value
    assert type(found) is type(expected)
    assert (found.message, found.path, found.remedy) == (expected.message, expected.path, expected.remedy)
    assert found.exit_code == expected.exit_code


def test_a_defect_in_a_task_is_an_execution_error_that_names_it(engine: Engine) -> None:
    with pytest.raises(ExecutionError, match="IndexError: list index out of range"):
        engine.run(break_down, [{"n": 0}, {"n": 3}], run_epoch=1)


def test_a_result_that_is_no_json_is_refused(engine: Engine) -> None:
    with pytest.raises(ExecutionError, match="TypeError: Object of type object is not JSON serializable"):
        engine.run(answer_nonsense, [{}], run_epoch=1)


def test_an_engine_serves_again_after_a_failure(engine: Engine) -> None:
    with pytest.raises(ConfigError):
        engine.run(fail, [{"error": "config"}], run_epoch=1)
    assert engine.run(fail, [{}], run_epoch=2) == [{}]


def test_progress_only_grows_and_ends_at_the_number_of_units(engine: Engine) -> None:
    seen: list[tuple[int, int]] = []
    engine.run(slow_first, [{"n": index} for index in range(4)], run_epoch=1, progress=lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {4}
    assert seen[-1] == (4, 4)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_no_thread_stays_behind(engine: Engine) -> None:
    engine.run(echo, [{"n": 1}], run_epoch=1)
    before = {thread.name for thread in threading.enumerate()}
    engine.run(echo, [{"n": index} for index in range(3)], run_epoch=1, progress=lambda done, total: None)
    assert {thread.name for thread in threading.enumerate()} <= before


def test_a_unit_is_not_shared_with_the_caller(engine: Engine) -> None:
    unit: dict[str, Any] = {"n": 1, "nested": {"a": 1}}
    assert engine.run(spoil, [unit], run_epoch=1) == [{"left": ["n"]}]
    assert unit == {"n": 1, "nested": {"a": 1}}
