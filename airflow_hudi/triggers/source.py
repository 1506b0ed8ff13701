"""Waits in the triggerer until the source of an overwrite is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.sources import AwaitedSource
from airflow_hudi.triggers.shared_timeline import in_thread_of
from airflow_hudi.triggers.wait import BaseWaitTrigger


class HudiSourceTrigger(BaseWaitTrigger):
    """Fires once when the source is there, or when it can no longer be looked at; see BaseWaitTrigger.

    :param source: the address of a Parquet file, or of a folder of them
    :param marker: the file that is in the folder when all others are; empty where files that are the same at two looks
        are enough
    :param hudi_conn_id: connection of type `hudi`, or None
    """

    def __init__(
        self,
        *,
        source: str,
        marker: str = "",
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.marker = marker
        self.hudi_conn_id = hudi_conn_id
        self._awaited = AwaitedSource(source, marker, hudi_conn_id)

    @property
    def arguments(self) -> dict[str, Any]:
        """See BaseWaitTrigger."""
        return {"source": self.source, "marker": self.marker, "hudi_conn_id": self.hudi_conn_id}

    @property
    def named(self) -> dict[str, str]:
        """See BaseWaitTrigger."""
        return {"source": self.source}

    async def look(self, is_due: Callable[[], bool]) -> tuple[Mapping[str, Any] | None, str]:
        """See BaseWaitTrigger."""
        is_there = await in_thread_of(self.source, self.hudi_conn_id, self._awaited.has_arrived)
        return ({} if is_there else None), f"{self.source} is not there yet" if not is_there and is_due() else ""
