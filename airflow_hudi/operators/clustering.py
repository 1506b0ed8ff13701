"""Writes the rows of small or unordered files into new files."""

from __future__ import annotations

from airflow_hudi.operators.service import BaseHudiServiceOperator
from hudi_core.timeline.instant import Action


class HudiClusteringOperator(BaseHudiServiceOperator):
    """Plans a clustering, runs one that is planned, or both. Arguments, retries and XCom: see BaseHudiServiceOperator.

    `options` define what is taken, and how rows are ordered, by Hudi's names:
    `hoodie.clustering.plan.strategy.sort.columns`, `hoodie.clustering.plan.partition.filter.mode` and the others of
    docs/options.md. Where a clustering would leave every file as it is, there is nothing to do.
    """

    service = Action.CLUSTERING
