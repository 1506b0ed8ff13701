"""Builds indexes of the metadata table while writers continue."""

from __future__ import annotations

from airflow_hudi.operators.service import BaseHudiServiceOperator
from hudi_core.timeline.instant import Action


class HudiIndexingOperator(BaseHudiServiceOperator):
    """Plans the build of indexes, runs one that is planned, or both.

    Arguments, retries and XCom: see BaseHudiServiceOperator. `options` name the indexes, by Hudi's names:
    `hoodie.metadata.index.column.stats.enable`, `hoodie.metadata.record.index.enable` and the others of
    docs/options.md; `airflow_hudi.indexing.file_groups` resizes an existing row-level index that has another number of
    them. A task that stopped waiting for a writer (`airflow_hudi.indexing.catchup_minutes`) resumes when it is retried.
    """

    service = Action.INDEXING
