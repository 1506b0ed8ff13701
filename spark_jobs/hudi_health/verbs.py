"""The requests of doctor, metadata validate and probe-store, which examine a table, its metadata table, its storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hudi_core.frozen import dataclass
from hudi_core.request.results import Result
from hudi_core.verbs.request import Request, Work

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext
    from hudi_core.storage.base import Storage
    from hudi_core.transaction.owner import Owner

PROBE_RESULTS: Final = ".airflow_hudi_probe/results"
"""The folder of results like verbs.request.RESULTS, for a storage without a table."""


@dataclass(frozen=True, slots=True)
class DoctorRequest(Request):
    """Examines the table; with `timeline_only` the data files are not listed."""

    verb = "doctor"
    timeline_only: bool = False

    def run(self, work: Work) -> Result:
        from hudi_health.doctor.examine import examine
        from hudi_health.doctor.wheels import read_executors

        report = examine(work.context, files=not self.timeline_only, executors=read_executors(work.engine))
        return Result(document=report.to_dict())


@dataclass(frozen=True, slots=True)
class MetadataValidateRequest(Request):
    """Compares the metadata table with the table."""

    verb = "metadata_validate"

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_health.validate.run import check_metadata

        check_metadata(context)
        return None

    def run(self, work: Work) -> Result:
        from hudi_core.storage.arrow_store import open_data_storage
        from hudi_health.validate.run import validate

        storage = open_data_storage(work.context.uri, work.context.storage_options)
        return Result(document=validate(work.context, storage).to_dict())


@dataclass(frozen=True, slots=True)
class ProbeStoreRequest(Request):
    """Races `writers` for one object of a storage, `rounds` times for each way to write."""

    verb = "probe_store"
    needs_table = False
    only_in_jobs = "it shows what the storage does where jobs use it"
    results_folder = PROBE_RESULTS
    writers: int = 16
    rounds: int = 60

    def run(self, work: Work) -> Result:
        return self.run_on_storage(work.context.storage)

    def run_on_storage(self, storage: Storage, storage_options: Mapping[str, str] | None = None) -> Result:
        from hudi_health.probe import probe

        return Result(document=probe(storage, self.writers, self.rounds).to_json())
