"""A compaction of a base file without the columns of the table would keep the rows of the log files alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hudi_core.config.services.compaction_config import CompactionConfig
from hudi_core.errors import UnsupportedError
from hudi_core.services.compaction.candidates import candidates
from hudi_core.timeline.actions.compaction import CompactionPlan, encode_compaction_plan
from hudi_core.timeline.instant import Action
from tests.support.bootstrapped_tables import bootstrap_one
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.unit.hudi_core.services.compaction.test_job import assert_refused

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_plan_on_a_file_of_a_bootstrap_is_refused(golden: Golden, folder: str) -> None:
    """Hudi's own plans name the file of the other table as well; an earlier release of this engine planned without."""
    table, instant = golden(folder, "mor_basic").table, "20990101000000000"
    skeleton = bootstrap_one(table)
    context = context_of(table)
    view = context.view(context.active.load())
    found = candidates(
        context, view, view.partitions(), instant, CompactionConfig.of({}), lambda item: item.log_counts > 0
    )
    plan = encode_compaction_plan(CompactionPlan(tuple(found.operations(np.arange(len(found))))))
    context.active.create_requested(instant, Action.COMPACTION, plan)
    error = assert_refused(table, UnsupportedError, "bootstrap", instant)
    assert error.path == skeleton
