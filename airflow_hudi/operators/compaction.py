"""Runs a compaction that a writer planned, as a Spark job, and believes the timeline about its success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi.operators.base import BaseHudiOperator
from airflow_hudi.operators.service import BaseHudiServiceOperator
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.timeline.instant import Action

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiCompactionOperator(BaseHudiServiceOperator):
    """Compacts at one pending instant of a table.

    Arguments beside these, retries and XCom: see BaseHudiServiceOperator.

    :param instant: the instant to compact at; empty for the oldest pending one (templated)
    :param metadata: `auto`, `on` or `off`: whether the job reads the metadata table
    :param allow_corrupt_log_blocks: compact file slices with corrupt log blocks, too; the content of those blocks is
        lost
    """

    service = Action.COMPACTION
    template_fields: Sequence[str] = ("instant", *BaseHudiOperator.template_fields)

    def __init__(
        self,
        *,
        instant: str | None = None,
        metadata: str = "auto",
        allow_corrupt_log_blocks: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(mode="execute", instant=instant, **kwargs)
        self.metadata = metadata
        self.allow_corrupt_log_blocks = allow_corrupt_log_blocks

    def request_fields(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        """See BaseHudiOperator."""
        fields = super().request_fields(reader, context)
        return {**fields, "metadata": self.metadata, "allow_corrupt_log_blocks": self.allow_corrupt_log_blocks}
