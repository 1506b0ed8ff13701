from __future__ import annotations

import inspect

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine, RemoteEngine, TaskAttempt
from hudi_spark.engine import SessionEngine, SparkEngine


@pytest.mark.parametrize("engine", [LocalEngine, SparkEngine])
@pytest.mark.parametrize("method", ["run", "exchange"])
def test_every_engine_takes_the_same_arguments(engine: type, method: str) -> None:
    def names(of: type) -> list[str]:
        return list(inspect.signature(getattr(of, method)).parameters)

    assert names(engine) == names(Engine)


def test_a_local_engine_has_no_executors_to_look_at() -> None:
    assert not isinstance(LocalEngine(), RemoteEngine)
    assert isinstance(SessionEngine.__new__(SessionEngine), RemoteEngine)


def test_an_attempt_is_a_value() -> None:
    assert TaskAttempt(1, 2, 3) == TaskAttempt(partition_id=1, stage_id=2, attempt_id=3)
