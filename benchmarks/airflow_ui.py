"""Airflow's web UI as its user goes through it: log in, trigger a DAG by its form, read a log, edit a connection."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping

from benchmarks.browser import Page
from demo.rest import Login

OPEN_FORM = "all('[data-testid=trigger-dag-button]')[0]"
SUBMIT = "all('[data-testid=trigger-dag-submit]')[0]"
DIALOG = "all('[role=dialog]').at(-1)"
TOAST = "all('[data-scope=toast][data-part=root]').map(e => e.innerText).join('\\n')"


class AirflowUI:
    """A user in front of the UI at `url`."""

    def __init__(self, page: Page, url: str, login: Login) -> None:
        """Logs in."""
        self._page = page
        self._url = url
        page.open(url)
        password = "all('input[type=password]')[0]"
        page.wait(password, "form to log in")
        page.type("all('input:not([type=password])')[0]", login.user, "the user's field")
        page.type(password, login.password, "the password's field")
        page.click("all('button[type=submit]')[0] || all('button')[0]", "button to log in")
        page.wait("location.pathname === '/' && named('button', 'Admin')", "home page")

    def open_form(self, dag_id: str, *, has_params: bool = True) -> None:
        """Opens the trigger form of a DAG, with all of its fields. That of a DAG without params has none."""
        self._page.open(f"{self._url}/dags/{dag_id}")
        self._page.wait(f"location.pathname === '/dags/{dag_id}' && {OPEN_FORM}", f"page of {dag_id}")
        self._page.click(OPEN_FORM, "button Trigger")
        fields = " && document.querySelector('[role=dialog] [name^=element_]')" if has_params else ""
        self._page.wait(f"{SUBMIT}{fields}", f"form of {dag_id}")

    def fill(self, values: Mapping[str, object]) -> None:
        """Types, chooses or switches the params."""
        for name, value in values.items():
            field = f"document.querySelector('[role=dialog] [name=element_{name}]')"
            kind = self._page.wait(f"{field}.type", f"field {name}")
            if kind == "hidden":
                self._page.click(f"{field}.parentElement.querySelector('[role=combobox]').parentElement", name)
                self._page.click(f"named('[role=option]', {json.dumps(value)})", f"{value} among the values of {name}")
            elif kind == "checkbox":
                if self._page.look(f"{field}.checked") != value:
                    self._page.click(f"{field}.closest('label')", name)
            else:
                self._page.type(field, str(value), name)

    def can_submit(self) -> bool:
        """Whether the button of the form is enabled."""
        return bool(self._page.look(f"{SUBMIT} && !{SUBMIT}.disabled"))

    def shown_conf(self) -> str:
        """The configuration that the form shows, or its first lines: the editor holds no more than are visible."""
        self._page.click("named('button', 'Advanced Options')", "Advanced Options")
        # Params of JSON have editors of their own, which come before it.
        lines = "[...all('.view-lines').at(-1)?.querySelectorAll('.view-line') ?? []]"
        by_place = "sort((a, b) => a.offsetTop - b.offsetTop).map(e => e.innerText)"
        conf = self._page.wait(f"{lines}.length > 2 && {lines}.{by_place}", "configuration of the run")
        return "\n".join(conf).replace("\xa0", " ")

    def submit(self, dag_id: str) -> str:
        """Presses the button and returns the id of the run, whose page follows."""
        self._page.click(SUBMIT, "button of the form")
        prefix = f"/dags/{dag_id}/runs/"
        path = self._page.wait(f"location.pathname.startsWith('{prefix}') && location.pathname", "page of the new run")
        return urllib.parse.unquote(path).removeprefix(prefix)

    def refusal(self, text: str) -> str:
        """Presses the button and returns the line with `text` that the form then shows."""
        self._page.click(SUBMIT, "button of the form")
        lines = f"{DIALOG}.innerText.split('\\n').find(line => line.includes({json.dumps(text)}))"
        return str(self._page.wait(lines, f"refusal because of {text}"))

    def log(self, dag_id: str, run_id: str, task_id: str, text: str) -> str:
        """What the page of a task's log shows, once `text` is in it."""
        run = urllib.parse.quote(run_id)
        self._page.open(f"{self._url}/dags/{dag_id}/runs/{run}/tasks/{task_id}")
        self._page.wait(f"document.body.innerText.includes({json.dumps(text)})", f"{text!r} in the log of {task_id}")
        return self._page.text()

    def add_connection(self, connection_id: str, kind: str, fields: Mapping[str, str]) -> None:
        """Admin > Connections > Add Connection, with the type's name in the UI, and the fields by their names."""
        page = self._page
        page.open(self._url)
        page.click("named('button', 'Admin')", "menu Admin")
        page.click("named('[role=menuitem]', 'Connections')", "Connections in the menu")
        page.click("named('button', 'Add Connection')", "button Add Connection")
        page.type("all('[name=connection_id]')[0]", connection_id, "connection id")
        page.click("all('[role=dialog] [role=combobox]')[0].parentElement", "connection types")
        page.click(f"named('[role=option]', {json.dumps(kind)})", f"connection type {kind}")
        self._save(fields)
        page.wait(self._row(connection_id), f"connection {connection_id} in the list")

    def edit_connection(self, connection_id: str, fields: Mapping[str, str]) -> None:
        """Changes fields of a connection in the list."""
        self.connections()
        self._page.click(self._button(connection_id, "Edit Connection"), "button Edit Connection")
        self._save(fields)

    def test_connection(self, connection_id: str) -> str:
        """Presses the Test button; what the UI answers."""
        self.connections()
        self._page.click(self._button(connection_id, "Test Connection"), "button Test Connection")
        return str(self._page.wait(TOAST, "answer of the test"))

    def connections(self) -> None:
        """Opens the list of connections."""
        self._page.open(f"{self._url}/connections")
        self._page.wait("named('button', 'Add Connection')", "list of connections")

    def _save(self, fields: Mapping[str, str]) -> None:
        opened = False
        for name, value in fields.items():
            if name.startswith("element_") and not opened:
                self._page.click("named('[role=dialog] button', 'Extra Fields')", "Extra Fields")
                opened = True
            self._page.type(f"all('[role=dialog] [name={name}]')[0]", value, name)
        self._page.click("named('[role=dialog] button', 'Save')", "button Save")
        self._page.wait("!all('[role=dialog]').length", "end of the form")

    def _row(self, connection_id: str) -> str:
        named = f"[...e.querySelectorAll('td')].some(cell => cell.innerText.trim() === {json.dumps(connection_id)})"
        return f"all('tr').find(e => {named})"

    def _button(self, connection_id: str, label: str) -> str:
        return f"{self._row(connection_id)}?.querySelector('[aria-label={json.dumps(label)}]')"
