"""A verb as the next one is written: one class, and one line in verbs.registry.VERBS. It counts the bytes of a table's
data files, each partition in a task of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hudi_core import frozen
from hudi_core.request.results import Result
from hudi_core.verbs.request import Request, Work

if TYPE_CHECKING:
    from hudi_core.config.engine_config import EngineConfig, Extent
    from hudi_core.engine.protocol import TaskAttempt
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner

LINE = "tests.support.toy_verb:WeighRequest"
"""Its line of the registry."""


@frozen.dataclass(frozen=True, slots=True)
class WeighRequest(Request):
    """Weigh the data files of a table, in units of `unit` bytes."""

    verb = "weigh"
    has_units = True
    unit: int = 1
    partitions: tuple[str, ...] = ()
    dry_run: bool = False

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        names = self._partitions(context)
        return None if names else Result(document={"bytes": 0, "reason": "the table has no partition"})

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        from hudi_core.config.engine_config import Extent

        return Extent.of(context.slice_sizes(), config)

    def run(self, work: Work) -> Result:
        names = self._partitions(work.context)
        shares = [Share(work.context.uri, name) for name in names]
        weights = work.engine.run(weigh, shares, run_epoch=1)
        return Result(document={"bytes": sum(weight.size for weight in weights) // self.unit, "reason": None})

    def _partitions(self, context: TableContext) -> list[str]:
        listed = context.view(context.active.load()).partitions()
        return [name for name in listed if not self.partitions or name in self.partitions]


@dataclass(frozen=True, slots=True)
class Share:
    """A unit of the work: a partition of a table on this machine."""

    table: str
    partition: str


@dataclass(frozen=True, slots=True)
class Weight:
    """What a task says of its share."""

    size: int


def weigh(share: Share, attempt: TaskAttempt) -> Weight:
    """Runs where the engine does."""
    from hudi_core.storage.local import LocalStorage

    files = LocalStorage(share.table).list_files(share.partition)
    return Weight(sum(info.size for info in files if not info.name.startswith(".hoodie_partition")))


def register_in(folder: Path) -> None:
    """Writes what gives every Python process whose PYTHONPATH begins with the folder the line of the registry."""
    (folder / "sitecustomize.py").write_text(f"from hudi_core.verbs.registry import VERBS\nVERBS['weigh'] = {LINE!r}\n")
