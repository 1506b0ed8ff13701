"""Posts a message to a webhook: how a task ended, its work, and the pending instants of its tables."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

import httpx
from airflow.sdk import BaseHook, BaseNotifier

from airflow_hudi.hooks import HudiHook
from airflow_hudi.results import pending_named
from airflow_hudi.task_fate import HudiNotificationFailed
from hudi_core.errors import ConfigError, HudiError, masked, shortened
from hudi_core.timeline.timeline import age_of

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

log = logging.getLogger(__name__)

_TIMEOUT: Final = 30.0
_MOST: Final = 20
_DONE: Final = ("table", "service", "instant", "files_written", "bytes_written", "files_deleted")
_TEMPLATES: Final = ("hudi_conn_id", "table", "tables", "policy")


class HudiNotifier(BaseNotifier):
    """Posts JSON to a webhook, for `on_failure_callback` and the other callbacks of tasks.

    The message is `{"text", "dag_id", "task_id", "run_id", "try_number", "url", "error", "done": [{"table", "service",
    "instant", "files_written", "bytes_written", "files_deleted"}], "tables": [{"table", "pending": [{"instant",
    "action", "state", "age_seconds"}], "error"}]}`. `url` leads to the task in its run. `done` is the work that this
    try of the task completed. `text` says all of it in words; Slack, Mattermost and Teams show `text`. The message is
    also sent if a table cannot be read; it names the table with its error.

    :param webhook_conn_id: connection with the webhook's address: the host, followed by the password as a path (as in
        Airflow's connections of Slack webhooks); without a password the host is the whole address
    :param tables: the tables; without them the task's own (templated)
    :param text: the first line of the message; without it the name of the task and how it ended (templated)
    :param hudi_conn_id: connection of type `hudi`; empty for the task's connection, None for none (templated)
    """

    template_fields = ("tables", "text", "hudi_conn_id")

    def __init__(
        self,
        *,
        webhook_conn_id: str = "hudi_webhook",
        tables: Sequence[str] = (),
        text: str = "",
        hudi_conn_id: str | None = "",
    ) -> None:
        super().__init__()
        self.webhook_conn_id = webhook_conn_id
        self.tables = tables
        self.text = text
        self.hudi_conn_id = hudi_conn_id

    def notify(self, context: Context) -> None:
        """Posts the message. Raises HudiNotificationFailed, whose message omits the address, because it is a secret."""
        address = _address_of(BaseHook.get_connection(self.webhook_conn_id))
        try:
            answer = httpx.post(address, json=self.message(context), timeout=_TIMEOUT)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HudiNotificationFailed(
                f"the webhook of connection {self.webhook_conn_id!r} cannot be reached: {type(error).__name__}",
                remedy="check the connection's host and password",
            ) from None
        if not answer.is_success:
            raise HudiNotificationFailed(
                f"the webhook of connection {self.webhook_conn_id!r} answered {answer.status_code}",
                remedy="check the connection's host and password",
            )

    async def async_notify(self, context: Context) -> None:
        """Calls `notify` in a thread, for deadline alerts, which the triggerer sends."""
        await asyncio.to_thread(self.notify, context)

    def message(self, context: Context) -> dict[str, Any]:
        ti, error = context.get("ti"), context.get("exception")
        task = _rendered(context.get("task"), context)
        default, conn_id = HudiHook.default_conn_name, self.hudi_conn_id
        hook = HudiHook((getattr(task, "hudi_conn_id", default) if conn_id == "" else conn_id) or None)
        tables = [_pending_on(table, hook) for table in self.tables or _tables_of(task)]
        named = {name: getattr(ti, name, None) for name in ("dag_id", "task_id", "run_id", "try_number")}
        error = shortened(masked(str(error))) if error else None
        first = self.text or f"{named['dag_id']}.{named['task_id']} of {named['run_id']}: {error or 'done'}"
        url, works = getattr(ti, "log_url", None), getattr(task, "works", ())
        done = [{name: getattr(work, name) for name in _DONE} for work in works if not work.earlier]
        lines = [first, *([url] if url else ()), *map(_work_shown, done[:_MOST])]
        if len(done) > _MOST:
            lines.append(f"and {len(done) - _MOST} more")
        text = "\n".join([*lines, *map(_shown, tables)])
        return {"text": text, **named, "url": url, "error": error, "done": done, "tables": tables}


def _tables_of(task: Any) -> Sequence[str]:
    """Returns the tables that a task works on. A task that failed because it cannot name them has none."""
    try:
        found: Sequence[str] = getattr(task, "tables_of_work", ())
    except HudiError as error:
        log.warning("The message names no tables: %s", error)
        return ()
    return [table for table in found if table]


def _rendered(task: Any, context: Context) -> Any:
    """Returns the task, or a copy with rendered templates: the DAG processor runs the callbacks of dead workers, and
    does not render templates. An argument that cannot be rendered gets its default.
    """
    given = {name: getattr(task, name, None) for name in _TEMPLATES}
    templates = {name: value for name, value in given.items() if "{{" in str(value)}
    if not templates:
        return task
    rendered = copy(task)
    for name, value in templates.items():
        try:
            found = task.render_template(value, context)
        except Exception:  # a template may raise anything
            log.warning("The message is sent without the task's %s, which cannot be rendered", name, exc_info=True)
            found = HudiHook.default_conn_name if name == "hudi_conn_id" else ""
        setattr(rendered, name, found)
    return rendered


def _pending_on(table: str, hook: HudiHook) -> dict[str, Any]:
    found: dict[str, Any] = {"table": table, "pending": [], "error": None}
    try:
        look = hook.timeline(table).look()
        pending = list(look.timeline.pending())[:_MOST]
        found["pending"] = [pending_named(item, age_of(item, look.at, look.zone)) for item in pending]
    except HudiError as error:
        found["error"] = str(error)
    except Exception as error:  # Airflow's errors, such as a missing connection: the message is sent nevertheless.
        log.warning("%s is not described in the message", table, exc_info=True)
        found["error"] = shortened(masked(f"{type(error).__name__}: {error}"))
    return found


def _work_shown(work: dict[str, Any]) -> str:
    written = f"{work['files_written']} files written" if work["files_written"] else ""
    if written and work["bytes_written"]:
        written += f" ({work['bytes_written']} bytes)"
    deleted = f"{work['files_deleted']} files deleted" if work["files_deleted"] else ""
    named = " ".join(filter(None, (work["service"], work["instant"])))
    return f"{work['table']}: {named}: {', '.join(filter(None, (written, deleted))) or 'done'}"


def _address_of(connection: Connection) -> str:
    """Returns the address of the webhook. Raises ConfigError for a connection without a host."""
    host = (connection.host or "").rstrip("/")
    if not host:
        raise ConfigError(f"the connection {connection.conn_id!r} has no host", remedy="give the webhook's address")
    if "://" not in host:
        host = f"{connection.schema or 'https'}://{host}" + (f":{connection.port}" if connection.port else "")
    return f"{host}/{connection.password.lstrip('/')}" if connection.password else host


def _shown(table: dict[str, Any]) -> str:
    if table["error"]:
        return f"{table['table']}: {table['error']}"
    if not table["pending"]:
        return f"{table['table']}: nothing is pending"
    pending = (
        f"{item['action']} {item['instant']} is {item['state']} for {item['age_seconds']} s"
        for item in table["pending"]
    )
    return f"{table['table']}: {'; '.join(pending)}"
