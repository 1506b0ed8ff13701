"""Whether the rows of an overwrite have arrived: the one rule of an operator's look and of its trigger's."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hudi.addresses import is_absolute
from airflow_hudi.hooks.hudi import HudiHook
from hudi_core.storage.local import followed


@dataclass(frozen=True, slots=True)
class AwaitedSource:
    """A Parquet file, or a folder of them, which is there when a file is in it that an overwrite reads
    (services.overwrite.source), or with `marker` when that file is in it.
    """

    address: str
    marker: str
    hudi_conn_id: str | None

    def is_there(self) -> bool:
        """By one listing of the folder and, without a marker, the request for a file. Raises as HudiHook.storage and
        StorageError.
        """
        hook, address = HudiHook(self.hudi_conn_id), followed(self.address.rstrip("/"))
        names = hook.storage(address).list_names("")
        if self.marker:
            return self.marker in names
        if any(not name.startswith(("_", ".")) for name in names):
            return True
        folder, _, name = address.rpartition("/")
        # The folder of a bucket is none.
        return is_absolute(folder) and hook.storage(folder).exists(name)

    def late(self, seconds: float) -> str:
        """What is said of one that is not there after so many seconds."""
        lacks = f"no {self.marker} in it" if self.marker else "no Parquet file"
        return f"the source {self.address} has not arrived: {lacks} after a wait of {seconds:.0f} s"
