"""Deletes the files that no query of the kept commits needs any more."""

from __future__ import annotations

from airflow_hudi.operators.service import BaseHudiServiceOperator
from hudi_core.timeline.instant import Action


class HudiCleanOperator(BaseHudiServiceOperator):
    """Plans a clean, runs one, or both. Arguments, retries and XCom: see BaseHudiServiceOperator.

    `options` define what is kept, by Hudi's names: `hoodie.clean.policy`, `hoodie.clean.commits.retained` and the
    others of docs/options.md.
    """

    service = Action.CLEAN
