"""Merges the log files of file slices into one log file each."""

from __future__ import annotations

from typing import Any

from airflow_hudi.operators.service import BaseHudiServiceOperator


class HudiLogCompactionOperator(BaseHudiServiceOperator):
    """Runs a log compaction that is planned, plans one, or both. Arguments, retries and XCom: see
    BaseHudiServiceOperator.

    It plans with `hoodie.log.compaction.enable=true` among the `options` only, which says that the table's readers know
    log compactions: docs/spec/log-compaction.md. The other options are in docs/options.md.

    :param mode: see BaseHudiServiceOperator; `execute` is the default here (templated)
    """

    service = "log_compaction"

    def __init__(self, *, mode: str = "execute", **kwargs: Any) -> None:
        super().__init__(mode=mode, **kwargs)
