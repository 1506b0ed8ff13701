"""Whether the rows of an overwrite have arrived: the one rule of an operator's look and of its trigger's."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_hudi.addresses import is_absolute
from airflow_hudi.hooks.hudi import HudiHook
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
