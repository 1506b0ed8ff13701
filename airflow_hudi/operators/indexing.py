"""Builds indexes of the metadata table while writers go on."""

from __future__ import annotations

from airflow_hudi.operators.service import BaseHudiServiceOperator
from hudi_core.timeline.instant import Action


class HudiIndexingOperator(BaseHudiServiceOperator):
    """Plans the build of indexes, runs one that is planned, or both. Arguments, retries and XCom: see
    BaseHudiServiceOperator.

    `options` say which indexes, by Hudi's names: `hoodie.metadata.index.column.stats.enable`,
    `hoodie.metadata.record.index.enable` and the others of docs/spec/indexing.md; `airflow_hudi.indexing.file_groups`
    resizes an index of rows that is there with another number of them. A task that gave up waiting for a writer
    (`airflow_hudi.indexing.catchup_minutes`) goes on when it is retried.
    """

    service = Action.INDEXING
