"""`doctor`: looks at a table from all sides and writes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Finding, WriterOption
from hudi_core.services.doctor.observations import DoctorFacts, ExecutorFacts
from hudi_core.services.doctor.observe import read_facts
from hudi_core.services.doctor.rules import diagnose
from hudi_core.services.doctor.writer_rules import writer_options


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What was found, the worst first, and the facts that it rests on."""

    name: str
    version: int
    facts: DoctorFacts
    findings: tuple[Finding, ...]
    writer_options: tuple[WriterOption, ...]

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl doctor --json`."""
        facts = self.facts
        clock = asdict(facts.clock)
        clock["offsets"] = list(facts.clock.offsets)
        return {
            "table": facts.uri,
            "name": self.name,
            "version": self.version,
            "findings": [finding.to_dict() for finding in self.findings],
            "writer_options": [option.to_dict() for option in self.writer_options],
            "clock": clock,
            "lock": asdict(facts.lock),
            "store": asdict(facts.store),
            "wheels": [asdict(wheel) for wheel in facts.wheels],
            "executors": None
            if facts.executors is None
            else asdict(facts.executors) | {"setups": list(facts.executors.setups)},
            "files_looked_at": facts.orphans.looked,
        }


def examine(context: TableContext, *, files: bool = True, executors: ExecutorFacts | None = None) -> DoctorReport:
    """Examines the table; without `files` its data files are not listed, so no orphans are found. Errors as of
    read_facts.
    """
    facts = read_facts(context, files=files, executors=executors)
    return DoctorReport(
        context.config.name, int(context.config.version), facts, tuple(diagnose(facts)), tuple(writer_options(facts))
    )
