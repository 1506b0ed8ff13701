"""Replaces the rows of partitions by the rows of Parquet files, a query or a DataFrame, or deletes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from airflow_hudi.operators.tokens import check_literals, serve_once
from airflow_hudi.operators.write import BaseHudiRowsOperator
from hudi_core.timeline.instant import Action
from hudi_core.verbs.write import DeletePartitionRequest, InsertOverwriteRequest


class HudiInsertOverwriteOperator(BaseHudiRowsOperator):
    """Replaces partitions by the rows of Parquet files, a query or a DataFrame: the partitions of the rows,
    `partitions`, or all. BaseHudiRowsOperator describes the rest.

    :param partitions: paths of partitions, as a list, or as a text that separates them by commas or lines. The paths of
        a list are taken unchanged: an empty one is the partition of a table without partition columns (templated)
    :param whole_table: whether all partitions are replaced; may be rendered (templated)
    """

    request = InsertOverwriteRequest
    commit_actions = (Action.REPLACE_COMMIT,)
    partitions: Sequence[str] | str = ()
    whole_table: bool | str = False
    template_fields = ("partitions", "whole_table", *BaseHudiRowsOperator.template_fields)


class HudiDeletePartitionOperator(BaseHudiOperator):
    """Deletes all rows of `partitions`: queries find no rows there, and a later clean deletes the files. Token, retries
    and XCom are those of BaseHudiRowsOperator. A partition that the table does not have is bad input.

    :param partitions: as in HudiInsertOverwriteOperator (templated)
    :param token: as in BaseHudiRowsOperator (templated)
    :param dry_run: as in BaseHudiRowsOperator (templated)
    """

    request = DeletePartitionRequest
    nothing_to_do: str = "succeed"
    partitions: Sequence[str] | str = ()
    template_fields = ("partitions", "token", DRY_RUN, *BaseHudiOperator.template_fields)

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literals(self, self.partitions)

    def serve(self) -> dict[str, Any]:
        return serve_once(self)
