"""doctor and probe-store: what is wrong with a table, and with the storage below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_core.request.results import Result
from hudi_core.verbs.request import Request, Work

if TYPE_CHECKING:
    from hudi_core.storage.base import Storage

PROBE_RESULTS: Final = ".airflow_hudi_probe/results"
"""As verbs.request.RESULTS, where there need not be a table."""


@dataclass(frozen=True, slots=True)
class DoctorRequest(Request):
    """Examines the table; with `timeline_only` the data files are not listed."""

    verb = "doctor"
    timeline_only: bool = False

    def run(self, work: Work) -> Result:
        from hudi_core.services.doctor.examine import examine
        from hudi_core.services.doctor.wheels import read_executors

        report = examine(work.context, files=not self.timeline_only, executors=read_executors(work.engine))
        return Result(document=report.to_dict())


@dataclass(frozen=True, slots=True)
class ProbeStoreRequest(Request):
    """Races `writers` for one object of a storage, `rounds` times for each way to write."""

    verb = "probe_store"
    needs_table = False
    results_folder = PROBE_RESULTS
    writers: int = 16
    rounds: int = 60

    def run(self, work: Work) -> Result:
        return self.run_on_storage(work.context.storage)

    def run_on_storage(self, storage: Storage) -> Result:
        from hudi_core.storage.probe import probe

        return Result(document=probe(storage, self.writers, self.rounds).to_json())
