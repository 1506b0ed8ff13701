"""Work that is done once: the token that names it, and the XCom, which says whether an earlier run did it."""

from __future__ import annotations

import hashlib
import json
from datetime import timezone
from typing import TYPE_CHECKING, Any, Final

from airflow_hudi.arguments import is_literal, own_fields, verb_values
from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from airflow_hudi.results import document_of
from hudi_core.verbs.write import MAX_TOKEN

if TYPE_CHECKING:
    from airflow.sdk import Context

_OF_SCHEDULE: Final = ("scheduled", "backfill")
"""Airflow's types of runs that belong to a data interval or partition of the schedule."""
_DOCUMENT: Final = (
    *("instant", "operation", "partitions", "replaced_file_groups", "files_written", "records"),
    *("inserted", "updated", "deleted", "repeated", "engine", "reason"),
)
"""The members of hudictl's document that the XCom always has."""


def check_literals(operator: Any, *needed: Any) -> None:
    """Makes the request of an operator whose arguments are literals. Does nothing where none of the `needed` arguments
    is given: a subclass may give it later. Raises ConfigError for arguments that mean nothing.
    """
    if any(needed) and is_literal(*(getattr(operator, field.name) for field in own_fields(operator.request))):
        operator.request(table="/", **verb_values(operator.request, operator))


def token_of(operator: Any, context: Context) -> str:
    """Returns the operator's `token`, or a token of the task and its work: the same in each try, and in each run of one
    data interval or partition. The partition's date names it, because partition keys may omit the hour. Each run by
    asset events is new work, because they say that there are new rows. Each run by hand, by TriggerDagRunOperator or to
    materialize an asset is new work, too: Airflow gives it the last interval that is over, whatever `ds` is.
    """
    if operator.token:
        return str(operator.token)
    ti, run = context["ti"], context.get("dag_run")
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if run is not None and run.run_type not in _OF_SCHEDULE:
        interval = ti.run_id
    elif run is not None and run.partition_date is not None:
        interval = run.partition_date.astimezone(timezone.utc).isoformat()
    else:
        interval = ti.run_id if start is None or end is None else f"{start.isoformat()}/{end.isoformat()}"
    mapped = ""
    if ti.map_index is not None and ti.map_index >= 0:
        # The mapped values may be in another order when the run is cleared.
        names = sorted({"table", *operator.template_fields} - {"token", DRY_RUN, *BaseHudiOperator.template_fields})
        work = json.dumps([[name, getattr(operator, name)] for name in names], default=str, sort_keys=True)
        mapped = f"[{ti.map_index}:{hashlib.sha256(work.encode()).hexdigest()[:16]}]"
    name = f"airflow:{ti.dag_id}/{ti.task_id}{mapped}@{interval}"
    return name if len(name) <= MAX_TOKEN else f"airflow:sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def serve_once(operator: BaseHudiOperator) -> dict[str, Any]:
    """Does the work of the operator's token and returns the XCom. Raises as BaseHudiOperator.result_of, and ConfigError
    for arguments that are invalid or hold a secret.
    """
    request = operator.new_request(token=token_of(operator, operator.context))
    if request.dry_run:
        return {"token": request.token, **operator.preview(request)}
    document = document_of(operator.result_of(request))
    xcom = {
        "table": operator.reader.storage.uri,
        "token": request.token,
        **{name: document.get(name) for name in _DOCUMENT},
    }
    if xcom["reason"] is not None and not xcom["repeated"]:
        return operator.nothing(xcom, xcom["reason"])
    operator.log.info("%s: %s", request.verb, xcom)
    return xcom
