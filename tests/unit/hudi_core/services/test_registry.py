"""Every line of the registry names a service of that name."""

from __future__ import annotations

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.request.services import NOT_IN_RELEASE, SERVICES, Step, next_step, service_of_action
from hudi_core.services.registry import service_of
from hudi_core.services.service import ImmediateService, InstantService


@pytest.mark.parametrize("name", SERVICES)
def test_each_line_names_its_service(name: str) -> None:
    service = service_of(name)
    assert service.name == name
    assert isinstance(service, InstantService | ImmediateService)
    if isinstance(service, InstantService):
        assert service_of_action(service.action) == name


@pytest.mark.parametrize("name", NOT_IN_RELEASE)
def test_a_service_of_hudi_that_is_not_run_here(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{name} is not in this release"):
        service_of(name)


def test_the_service_of_an_action() -> None:
    assert [service_of_action(action) for action in ("logcompaction", "clustering", "deltacommit")] == [
        "log_compaction",
        "clustering",
        None,
    ]


def test_what_is_pending_goes_first() -> None:
    assert [
        next_step(is_pending=pending, schedule=schedule) for pending in (True, False) for schedule in (True, False)
    ] == [
        Step.RUN,
        Step.RUN,
        Step.PLAN,
        Step.NOTHING,
    ]
