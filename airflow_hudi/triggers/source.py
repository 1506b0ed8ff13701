"""Whether the rows of an overwrite have arrived: the one rule of an operator's look and of its trigger's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_hudi.addresses import is_absolute
from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.triggers.shared_timeline import in_thread_of
from airflow_hudi.triggers.wait import BaseWaitTrigger
from hudi_core.errors import StorageNotFoundError
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import followed


@dataclass(slots=True)
class AwaitedSource:
    """A Parquet file, or a folder of them, which is there when a file named .parquet is in it, or with `marker` when
    that file is in it.
    """

    address: str
    marker: str
    hudi_conn_id: str | None
    _seen: list[FileInfo] = field(default_factory=list, init=False)
    """What the last look of a wait showed."""

    def is_there(self) -> bool:
        """By one listing of the folder and, without a marker, the request for a file. Raises as HudiHook.storage and
        StorageError.
        """
        return bool(self._found())

    def has_arrived(self) -> bool:
        """For each look of a wait: whether it is there and, without a marker, as the look before it showed it. What is
        being copied grows. Raises as is_there.
        """
        before, self._seen = self._seen, self._found()
        return bool(self._seen) and (bool(self.marker) or self._seen == before)

    def _found(self) -> list[FileInfo]:
        """The files by which it is there; none where it is not."""
        hook, address = HudiHook(self.hudi_conn_id), followed(self.address.rstrip("/"))
        files = hook.storage(address).list_files("")
        if self.marker:
            return [info for info in files if info.name == self.marker]
        if any(info.name.endswith(".parquet") and not info.name.startswith(("_", ".")) for info in files):
            return files
        folder, _, name = address.rpartition("/")
        if not is_absolute(folder):
            return []  # the folder of a bucket is none
        try:
            return [hook.storage(folder).stat(name)]
        except StorageNotFoundError:
            return []

    def late(self, seconds: float) -> str:
        """What is said of one that is not there after so many seconds."""
        lacks = f"no {self.marker} in it" if self.marker else "no Parquet files, or not the same at two looks,"
        return f"the source {self.address} has not arrived: {lacks} after a wait of {seconds:.0f} s"


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
        return {"source": self.source, "marker": self.marker, "hudi_conn_id": self.hudi_conn_id}

    @property
    def named(self) -> dict[str, str]:
        return {"source": self.source}

    async def look(self, is_due: Callable[[], bool]) -> tuple[Mapping[str, Any] | None, str]:
        is_there = await in_thread_of(self.source, self.hudi_conn_id, self._awaited.has_arrived)
        return ({} if is_there else None), f"{self.source} is not there yet" if not is_there and is_due() else ""
