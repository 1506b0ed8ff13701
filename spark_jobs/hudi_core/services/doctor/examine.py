"""`doctor`: looks at a table from all sides and writes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import ExecutorObservations, Finding, Observations, WriterOption
from hudi_core.services.doctor.observe import observe
from hudi_core.services.doctor.rules import diagnose
from hudi_core.services.doctor.writer_rules import writer_options


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The findings, the worst first, and their observations."""

    name: str
    version: int
    observed: Observations
    findings: tuple[Finding, ...]
    writer_options: tuple[WriterOption, ...]

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl doctor --json`."""
        observed, executors = self.observed, self.observed.executors
        return {
            "table": observed.uri,
            "name": self.name,
            "version": self.version,
            "findings": [finding.to_dict() for finding in self.findings],
            "writer_options": [asdict(option) for option in self.writer_options],
            "clock": asdict(observed.clock) | {"offsets": list(observed.clock.offsets)},
            "lock": asdict(observed.lock),
            "store": asdict(observed.store),
            "wheels": [asdict(wheel) for wheel in observed.wheels],
            "executors": None if executors is None else asdict(executors) | {"setups": list(executors.setups)},
            "files_looked_at": observed.orphans.looked,
        }


def examine(
    context: TableContext, *, files: bool = True, executors: ExecutorObservations | None = None
) -> DoctorReport:
    """Examines the table; without `files` its data files are not listed. Errors as of observe."""
    observed = observe(context, files=files, executors=executors)
    return DoctorReport(
        context.config.name,
        int(context.config.version),
        observed,
        tuple(diagnose(observed)),
        tuple(writer_options(observed)),
    )
