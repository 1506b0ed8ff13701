"""The few calls of Airflow's REST API that the demo makes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

_TIMEOUT_SECONDS = 60


class NotReadyError(Exception):
    """The server does not answer, or not with JSON, or the requested object does not exist yet."""


@dataclass(frozen=True, slots=True)
class Login:
    """A user of the simple auth manager."""

    user: str
    password: str


class Airflow:
    """An Airflow with the simple auth manager. Without a login every user is an admin."""

    def __init__(self, url: str, login: Login | None = None) -> None:
        self.url = url
        self._login = login
        self._token: str | None = None

    def get(self, path: str) -> dict[str, Any]:
        """GET; raises NotReadyError."""
        return self._call("GET", path, None)

    def unhealthy(self) -> list[str]:
        """The components that do not report health; the server itself counts as all of them."""
        try:
            health = self.get("/api/v2/monitor/health")
        except NotReadyError:
            health = {}
        parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
        return [part for part in parts if (health.get(part) or {}).get("status") != "healthy"]

    def dag_ids(self) -> set[str]:
        """The DAGs that are parsed. Raises NotReadyError."""
        return {str(dag["dag_id"]) for dag in self.get("/api/v2/dags?limit=100")["dags"]}

    def add_connection(self, connection_id: str, fields: Mapping[str, Any]) -> None:
        """Creates a connection, `extra` given as an object. Raises NotReadyError, also when it exists."""
        extra = json.dumps(fields.get("extra", {}))
        body = {**fields, "connection_id": connection_id, "extra": extra}
        self._call("POST", "/api/v2/connections", body)

    def change_connection(self, connection_id: str, fields: Mapping[str, Any], changed: str) -> None:
        """Changes one field of a connection, whose type has to be among `fields`. Raises NotReadyError."""
        body = {**fields, "connection_id": connection_id}
        self._call("PATCH", f"/api/v2/connections/{connection_id}?update_mask={changed}", body)

    def trigger(self, dag_id: str, run_id: str, conf: Mapping[str, Any] | None = None) -> None:
        """Unpauses a DAG and starts a run with these params. Raises NotReadyError while the DAG is not known yet."""
        self._call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})
        body = {"logical_date": None, "dag_run_id": run_id, "conf": dict(conf or {})}
        self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)

    def run_state(self, dag_id: str, run_id: str) -> str:
        """State of a run: queued, running, success or failed."""
        return str(self.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """The run's task instances by task id."""
        answer = self.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances")
        return {task["task_id"]: task for task in answer["task_instances"]}

    def log_lines(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """The messages of a task's log so far."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}?full_content=true"
        content = self.get(path).get("content", [])
        return [entry if isinstance(entry, str) else str(entry.get("event", "")) for entry in content]

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """What a task returned."""
        value = self.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value")[
            "value"
        ]
        return json.loads(value) if isinstance(value, str) else value

    def _call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        if self._token is None and path.startswith("/api/v2/") and path != "/api/v2/monitor/health":
            login = None if self._login is None else {"username": self._login.user, "password": self._login.password}
            answer = self._send("GET" if login is None else "POST", "/auth/token", login)
            self._token = str(answer["access_token"])
        return self._send(method, path, body)

    def _send(self, method: str, path: str, body: Any) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                found = json.load(answer)
        except (OSError, HTTPException, ValueError) as error:
            detail = error.read().decode(errors="replace")[:500] if isinstance(error, urllib.error.HTTPError) else ""
            raise NotReadyError(f"{method} {path}: {error} {detail}") from error
        if not isinstance(found, dict):
            raise NotReadyError(f"{method} {path}: answered no JSON object")
        return found
