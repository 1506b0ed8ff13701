"""The list of services."""

from __future__ import annotations

from importlib import import_module

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.request.services import SERVICES, check_service, service_of_action
from hudi_core.timeline.instant import Action


@pytest.mark.parametrize("name", SERVICES)
def test_an_entry_names_the_class_of_its_service(name: str) -> None:
    module, _, implementation = check_service(name).implementation.partition(":")
    assert getattr(import_module(module), implementation).name == name


@pytest.mark.parametrize("name", ["defragment", ""])
def test_a_service_of_another_release_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="not in this release") as caught:
        check_service(name)
    assert "archive, clean, clustering, compaction, indexing, log_compaction, rollback" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("action", "service"),
    [
        (Action.COMPACTION, "compaction"),
        (Action.LOG_COMPACTION, "log_compaction"),
        (Action.CLUSTERING, "clustering"),
        (Action.CLEAN, "clean"),
        (Action.INDEXING, "indexing"),
        (Action.COMMIT, None),
        (Action.DELTA_COMMIT, None),
        (Action.REPLACE_COMMIT, None),
        (Action.SAVEPOINT, None),
    ],
)
def test_the_service_of_a_pending_action(action: str, service: str | None) -> None:
    assert service_of_action(action) == service
