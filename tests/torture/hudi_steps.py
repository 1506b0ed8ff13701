"""The steps that real Hudi does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.interop.changes import write_parquet
from tests.interop.real_hudi import RealHudi
from tests.torture.model import Model, folders
from tests.torture.our_commands import Situation
from tests.torture.program import Program, Service, Write

NAME: Final = "hoodie.datasource.write.operation"
VALIDATOR: Final = "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator"
FAILS: Final = {
    "hoodie.precommit.validators": VALIDATOR,
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
"""A check before the commit that no table passes: the writer ends with its files and markers left, as a dead one."""
PENDING: Final = {
    "compact": ("compaction",),
    "cluster": ("clustering", "replacecommit"),
    "log_compact": ("logcompaction",),
}
LAWFUL: Final = (
    "Not allowed to update the clustering file group",
    "clustering is not supported",
    "Found commits after time",
    "Could not rollback a savepointed commit",
    "Cannot rollback",
    "is earlier than the latest compaction",
    "Could not find any data files",
    "No plans to execute",
    "Failed to drop partitions. Please ensure that there are no pending table service actions",
    "on secondary index",
)
"""What real Hudi refuses on any table: overwrites beside a secondary index, too (docs/reference/hudi-notes.md)."""


def write(hudi: RealHudi, program: Program, step: Write, model: Model, base: Path) -> None:
    """Gives a write to real Hudi. Raises RealHudiError."""
    rows = model.rows_to_write(step)
    parquet = write_parquet(rows, base.parent, "rows")
    options = {**program.table.options, **step.options, **(FAILS if step.fails else {})}
    if not base.exists():
        hudi.ask("create", base=str(base), parquet=parquet, options={**options, NAME: step.operation})
        return
    if step.operation == "delete_partition":
        options["hoodie.datasource.write.partitions.to.delete"] = ",".join(folders(step.keys, program.table))
    hudi.ask("write", base=str(base), operation=step.operation, parquet=parquet, options=options)


def instant_for(step: Service, now: Situation) -> str | None:
    """The instant that the service is about, or None where there is none."""
    if step.service in PENDING:
        return next(iter(now.pending(*PENDING[step.service])), None)
    kept = {item.requested_time for item in now.timeline if item.action == "savepoint"}
    free = [write for write in now.writes() if write not in kept]  # a second savepoint fails: the file exists
    chosen = {"rollback": now.last_write(), "savepoint": free, "restore": now.savepoints()}[step.service]
    return chosen[-1 - step.pick % len(chosen)] if chosen else None


def removable(step: Service, now: Situation) -> tuple[str, ...]:
    """The writes of the model that the service rolls back when it succeeds."""
    if step.service not in ("rollback", "restore"):
        return ()
    target = instant_for(step, now)
    if target is None:
        return ()
    writes = now.model.instants()
    place = writes.index(target)
    return tuple(writes[place:] if step.service == "rollback" else writes[place + 1 :])


def serve(hudi: RealHudi, program: Program, step: Service, now: Situation) -> bool:
    """Gives a service to real Hudi; False where the table has nothing for it. Raises RealHudiError."""
    options = {**program.table.options, **step.options}
    instant = None
    if step.service in PENDING or step.service in ("rollback", "savepoint", "restore"):
        instant = instant_for(step, now)
        if instant is None:
            return False
    if step.service == "schedule_compaction":
        hudi.ask("schedule_compaction", base=str(now.base), options=options)
    else:
        ask_service(hudi, now.base, step.service, instant, options)
    return True


def ask_service(hudi: RealHudi, base: Path, name: str, instant: str | None, options: Mapping[str, str]) -> None:
    """A call of Hudi's write client; `instant` where it takes one. Raises RealHudiError."""
    if name == "compact":
        hudi.ask("compact", base=str(base), instant=instant, options=dict(options))
    else:
        hudi.ask("service", base=str(base), name=name, instant=instant, options=dict(options))
