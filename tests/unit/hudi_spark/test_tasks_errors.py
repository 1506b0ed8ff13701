"""How units and errors cross to Spark's tasks and back."""

from __future__ import annotations

import pytest

from hudi_core import errors
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    ExecutionError,
    HudiError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
    TimelineError,
    is_transient,
)
from hudi_spark.tasks import TaskFailure, error_from_json, error_in_text, error_to_json

KINDS = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HudiError)),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_with_its_fields(kind: type[HudiError]) -> None:
    error = kind("what happened\nin two lines", path="a/b", remedy="do this")
    for found in (
        error_from_json(error_to_json(error)),
        error_in_text(f"Traceback…\n hudi_spark.tasks.TaskFailure: {TaskFailure(error)}\n\tat org.apache"),
    ):
        assert type(found) is kind
        assert (found.message, found.path, found.remedy) == ("what happened\nin two lines", "a/b", "do this")


def test_a_name_that_is_no_error_of_ours_becomes_an_execution_error() -> None:
    for name in ("SystemExit", "annotations", "EXIT_FAILED", "Any", None):
        assert type(error_from_json({"type": name, "message": "m", "path": None, "remedy": None})) is ExecutionError


@pytest.mark.parametrize("text", ["", "some failure", 'HUDI_TASK_ERROR {"type": "Config', 'HUDI_TASK_ERROR {"type": }'])
def test_a_text_without_a_whole_error_yields_none(text: str) -> None:
    assert error_in_text(text) is None


def test_only_a_storage_failure_is_worth_another_attempt() -> None:
    assert is_transient(StorageError("timed out"))
    for kind in (
        StorageNotFoundError,
        StorageExistsError,
        ConfigError,
        CorruptFileError,
        ConflictError,
        TimelineError,
        ExecutionError,
    ):
        assert not is_transient(kind("no"))
