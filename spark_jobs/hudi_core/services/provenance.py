"""The engine that made an instant, in the extra metadata, where Hudi ignores unknown keys."""

from __future__ import annotations

from hudi_core import VERSION
from hudi_core.transaction.owner import Owner

OWNER_KEY = "airflow_hudi.owner"
RUN_KEY = "airflow_hudi.run_id"
VERSION_KEY = "airflow_hudi.version"


def provenance(owner: Owner) -> dict[str, str]:
    """The owner's name and process, the run's id and this release, for the extra metadata of a commit, clean or plan.
    No secrets are in it.
    """
    return {OWNER_KEY: owner.describe(), RUN_KEY: owner.run_id, VERSION_KEY: VERSION}
