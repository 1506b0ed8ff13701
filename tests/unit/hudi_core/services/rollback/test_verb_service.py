"""From an instant to the plan of its rollback, and rollback as a service."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError, TimelineError
from hudi_core.services.rollback.verb import RollbackService, rollback
from hudi_core.timeline.actions.rollback import decode_rollback_plan
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import (
    an_owner,
    data_files,
    open_context,
    pending_write,
)
from tests.unit.hudi_core.services.rollback.test_job import VERSIONS, Golden


class _NoEngine:
    def run(self, *args: object, **options: object) -> object:
        raise AssertionError("a rollback has no units")


NO_ENGINE = _NoEngine()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_service_plans_and_runs(golden: Golden, version: str) -> None:
    case = golden(version, "failed_inflight_mor")
    failed, after = pending_write(case.table), case.after()
    context = open_context(case.table)
    service = RollbackService()
    preview = service.schedule(context, an_owner(), dry_run=True)
    assert preview.instant is None
    assert preview.plan is not None
    scheduled = service.schedule(context, an_owner(), dry_run=False)
    assert scheduled.plan == preview.plan
    assert scheduled.instant is not None
    path = context.active.path(scheduled.instant, Action.ROLLBACK, State.REQUESTED)
    assert decode_rollback_plan(context.storage.read(path), path=path).instant == failed
    assert service.pending(context, context.active.load()) == [scheduled.instant]
    for _ in range(2):
        result = service.run(context, scheduled.instant, NO_ENGINE, an_owner(), None)
        assert (result.instant, result.action, result.state) == (scheduled.instant, "rollback", "completed")
    assert data_files(case.table) == data_files(after)
    assert "no rollback is pending" in (service.schedule(context, an_owner(), dry_run=False).reason or "")


def test_unknown_and_foreign_instants(golden: Golden) -> None:
    context = open_context(golden("6", "cleaned_commits_cow").table)
    with pytest.raises(ConfigError, match="holds no rollback at instant 20200101000000000") as caught:
        RollbackService().run(context, "20200101000000000", NO_ENGINE, an_owner(), None)
    assert "hudictl timeline TABLE --action rollback" in str(caught.value.remedy)
    with pytest.raises(ConfigError, match="holds no instant"):
        rollback(context, "20200101000000000", an_owner())
    clean = context.active.load().of_actions(Action.CLEAN).last()
    assert clean is not None
    with pytest.raises(ConfigError, match="cannot be rolled back"):
        rollback(context, clean.requested_time, an_owner())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_that_was_never_inflight_is_not_rolled_back(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "clustering_requested_cow").table)
    (pending,) = context.active.load().pending()
    with pytest.raises(TimelineError, match="only planned"):
        rollback(context, pending.requested_time, an_owner())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_only_was_requested(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    context = open_context(table)
    failed = context.new_instant(context.active.load())
    context.active.create_requested(failed, Action.COMMIT)
    before = data_files(table)
    assert rollback(context, failed, an_owner()).removed.instants == (failed,)
    assert data_files(table) == before
    assert not context.active.load().contains(failed)
