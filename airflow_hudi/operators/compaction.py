"""Merges the log files of file groups into new base files, or into one log file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi.operators.service import BaseHudiServiceOperator
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.timeline.instant import Action

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiCompactionOperator(BaseHudiServiceOperator):
    """Runs a compaction that is planned, plans one, or both. Arguments beside these, retries and XCom: see
    BaseHudiServiceOperator.

    `options` define when a compaction is due and what it takes, by Hudi's names:
    `hoodie.compact.inline.trigger.strategy`, `hoodie.compaction.strategy` and the others of docs/options.md. Where
    writers plan themselves (`hoodie.compact.schedule.inline`), mode `execute` runs their plans alone.

    :param metadata: `auto`, `on` or `off`: whether the job reads the metadata table
    :param allow_corrupt_log_blocks: compact file slices whose corrupt log blocks hold rows of a completed commit, too;
        those rows are lost
    """

    service = Action.COMPACTION

    def __init__(
        self,
        *,
        metadata: str = "auto",
        allow_corrupt_log_blocks: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.metadata = metadata
        self.allow_corrupt_log_blocks = allow_corrupt_log_blocks

    def request_fields(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        fields = super().request_fields(reader, context)
        return {**fields, "metadata": self.metadata, "allow_corrupt_log_blocks": self.allow_corrupt_log_blocks}


class HudiLogCompactionOperator(BaseHudiServiceOperator):
    """Runs a log compaction that is planned, plans one, or both. Arguments, retries and XCom: see
    BaseHudiServiceOperator.

    It plans with `hoodie.log.compaction.enable=true` among the `options` only, which says that the table's readers know
    log compactions: docs/spec/log-compaction.md. The other options are in docs/options.md.
    """

    service = "log_compaction"
