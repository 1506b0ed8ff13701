"""Every DAG triggered by its form in a headless Chromium, as a user does: `python -m benchmarks.forms`.

Stores benchmarks/results/forms.json; ends with 1 when a form, a run, the connection form or a log was not as it should
be. Airflow is that of `make demo-up`, with tables on which there is work to do. `--dag NAME` tries the forms of one DAG
alone; those of others, and the pages, stay as they are stored, each with the commit that it was tried with.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.airflow_ui import AirflowUI
from benchmarks.browser import PageError, open_page
from benchmarks.chromium import VERSION
from benchmarks.measure import head_commit, machine
from demo import up
from demo.rest import Airflow, NotReadyError
from hudi_core.table import HudiTable
from tests.support.golden_data import open_case
from tests.support.overwrites import own_rows, put_source, within
from tests.support.table_invariants import read_rows

ROOT = Path(__file__).parents[1]
DAGS = ROOT / "dags"
RESULTS = Path(__file__).parent / "results" / "forms.json"
RUN_SECONDS = 600.0
LOG_LINES = ("units done", "is completed: {")
"""What the log of a compaction has to show: its progress and its result."""


CONTROL = "control"
CONTROL_DAG = """
from airflow.sdk import DAG, Param
from airflow.providers.standard.operators.empty import EmptyOperator
with DAG("control", schedule=None, params={"text": Param("", type="string", minLength=1)}):
    EmptyOperator(task_id="nothing")
"""
"""A DAG whose form cannot be submitted with its defaults."""


NO_RUN = "none"
YES = {"confirm": "yes"}


class FormFault(Exception):
    """A form or a run is not as it should be."""


@dataclass(frozen=True)
class Case:
    """A form, what is put into it, and the states that its run and some of its tasks must reach; NO_RUN where its
    button must stay grey, since something that is required is not typed.
    """

    dag: str
    name: str = "defaults"
    typed: Mapping[str, object] = field(default_factory=dict)
    state: str = "success"
    tasks: Mapping[str, str] = field(default_factory=dict)
    plan_clean: bool = False


@dataclass(frozen=True)
class Tables:
    """The demo's table, three more beside it, of which `kept` goes back to its `commit`, and rows for a partition of
    `written`.
    """

    demo: Path
    stuck: str
    stuck_compaction: str
    written: str
    kept: str
    commit: str
    rows: Path
    partition: str


def make_tables(demo: Path, scratch: Path) -> Tables:
    """Copies, into the demo's warehouse, of a table with a compaction that has died, and of one to go back on."""
    stuck, written, kept = (
        open_case(version, case, scratch).table
        for version, case in (("9", "compaction_inflight"), ("8", "mor_basic"), ("8", "cow_basic"))
    )
    for table in (stuck, written, kept):
        shutil.copytree(table, demo.parent / table.name)
    (compaction,) = HudiTable.open(str(stuck)).timeline().pending()
    commits = HudiTable.open(str(kept)).timeline().commits().instants
    rows = read_rows(written)
    partition = min(rows.column("_hoodie_partition_path").to_pylist())
    source = put_source(own_rows(written, within(rows, partition)), demo.parent, name="rows")
    instant, commit = compaction.requested_time, commits[-2].requested_time
    return Tables(demo, stuck.name, instant, written.name, kept.name, commit, source, partition)


def cases(tables: Tables) -> list[Case]:
    """Each DAG with its defaults, then each value of what can be chosen, and each verb of the repairs, in an order in
    which there is something to do.
    """
    return [
        Case("hudi_compaction", tasks={"compact": "success"}),
        Case("hudi_clean", tasks={"clean": "success"}, plan_clean=True),
        Case("hudi_log_compaction", state="success", tasks={"merge_logs": "skipped"}),
        Case(
            "hudi_log_compaction",
            "plan",
            {"table": tables.written, "plan": True, "blocks": 1},
            tasks={"merge_logs": "success"},
        ),
        Case("hudi_clustering", tasks={"cluster": "success"}),
        *(
            Case(
                "hudi_clustering",
                layout,
                {"table": tables.written, "sort_columns": "name,qty", "layout": layout},
                tasks={"cluster": "success"},
            )
            for layout in ("linear", "z-order", "hilbert")
        ),
        Case("hudi_table_maintenance", tasks={"archive": "success"}),
        Case(
            "hudi_table_maintenance",
            "keep little",
            {"commits_retained": 1, "min_commits": 2, "max_commits": 3},
            tasks={"archive": "success"},
        ),
        Case("hudi_metadata", tasks={"validate": "success"}),
        Case("hudi_tables", state="success", tasks={"run_services": "skipped"}),
        Case("hudi_tables", "two tables", {"tables": f"{tables.demo.name}, {tables.written}", "commits_retained": 1}),
        *_fleet_cases(tables),
        Case("hudi_indexing", tasks={"build": "success", "validate": "success"}),
        Case(
            "hudi_indexing",
            "other indexes",
            {"column_stats": False, "bloom_filters": True, "record_index": True},
            tasks={"build": "success", "validate": "success"},
        ),
        Case("hudi_doctor", tasks={"doctor": "success", "probe_store": "skipped"}),
        Case(
            "hudi_doctor",
            "error",
            {"fail_on": "error", "table": tables.stuck, "engine": "local"},
            tasks={"doctor": "success"},
        ),
        Case("hudi_doctor", "warning", {"fail_on": "warning", "engine": "spark"}, tasks={"doctor": "success"}),
        Case(
            "hudi_doctor",
            "never",
            {"fail_on": "never", "probe_store": True, "engine": "auto"},
            tasks={"probe_store": "success"},
        ),
        *_write_cases(tables),
        *_repair_cases(tables),
    ]


def _write_cases(tables: Tables) -> list[Case]:
    """What is created, written and deleted."""
    return [
        Case("hudi_insert_overwrite", state=NO_RUN),
        Case(
            "hudi_insert_overwrite",
            "rows",
            {"table": tables.written, "source": str(tables.rows)},
            tasks={"overwrite": "success"},
        ),
        Case("hudi_create_table", state=NO_RUN),
        Case(
            "hudi_create_table",
            "like rows",
            {"table": "created", "table_name": "created", "record_key": "id", "like": str(tables.rows)},
            tasks={"create": "success"},
        ),
        Case("hudi_merge_day", state=NO_RUN),
        Case(
            "hudi_merge_day",
            "rows",
            {"table": tables.written, "source": str(tables.rows)},
            tasks={"merge": "success"},
        ),
        Case("hudi_delete_partition", state=NO_RUN),
        Case(
            "hudi_delete_partition",
            "one",
            {"table": tables.written, "partitions": tables.partition},
            tasks={"delete": "success"},
        ),
    ]


def _repair_cases(tables: Tables) -> list[Case]:
    """A drill, and each verb."""
    kept = {"table": tables.kept, "instant": tables.commit}
    stuck = {"table": tables.stuck, "instant": tables.stuck_compaction}

    def repair(verb: str, typed: Mapping[str, object]) -> Case:
        return Case("hudi_repair", verb, {"verb": verb, **typed, **YES}, tasks={verb: "success"})

    return [
        Case("hudi_drill", state=NO_RUN),
        Case("hudi_drill", "confirmed", YES, tasks={"check": "success", "delete_savepoint": "success"}),
        Case(
            "hudi_drill",
            "one",
            {"table": tables.written, "partition": "none", **YES},
            "failed",
            {"break_table": "failed"},
        ),
        Case("hudi_repair", state=NO_RUN),
        Case("hudi_repair", "confirmed", YES, tasks={"rollback": "success", "restore": "skipped"}),
        repair("rollback", {"table": tables.written}),
        repair("savepoint", {**kept, "comment": "before the repair"}),
        repair("restore", kept),
        repair("delete_savepoint", kept),
        repair("takeover", stuck),
        repair("unschedule", stuck),
        Case("hudi_repair", "restore, no instant", {"verb": "restore", **YES}, "failed", {"choose": "failed"}),
    ]


def _fleet_cases(tables: Tables) -> list[Case]:
    """The DAGs of policies and events."""
    return [
        Case("hudi_fleet", tasks={"services": "success", "alerts": "success"}),
        Case("hudi_services_on_events", tasks={"run_pending": "success"}),
        Case("hudi_changed_partitions", state="success", tasks={"find_changed": "skipped"}),
        Case("hudi_changed_partitions", "one", {"partitions": tables.partition}, tasks={"find_changed": "success"}),
        Case("hudi_cluster_partition"),
        Case(
            "hudi_cluster_partition",
            "one",
            {"table": tables.written, "partition": tables.partition, "sort_columns": "name"},
            tasks={"cluster": "success"},
        ),
    ]


def check_complete(chosen: Sequence[Case], api: Airflow) -> None:
    """Raises FormFault unless every DAG is tried with its defaults, and with each value that can be chosen."""
    for dag in sorted(path.stem for path in DAGS.glob("*.py")):
        mine = [case for case in chosen if case.dag == dag]
        if not any(not case.typed for case in mine):
            raise FormFault(f"{dag} is not tried with its defaults")
        for name, param in api.get(f"/api/v2/dags/{dag}/details")["params"].items():
            # The engines are the same in every form.
            tried = chosen if name == "engine" else mine
            missing = set(param["schema"].get("enum", ())) - {case.typed.get(name) for case in tried}
            if missing:
                raise FormFault(f"{dag} is not tried with {name} = {', '.join(sorted(map(str, missing)))}")


def submit(case: Case, ui: AirflowUI, api: Airflow, table: Path) -> dict[str, Any]:
    """Fills and submits the form, and follows its run. Raises FormFault, PageError, NotReadyError."""
    if case.plan_clean:
        plan_clean(table)
    has_params = bool(api.get(f"/api/v2/dags/{case.dag}/details")["params"])
    started = time.monotonic()
    ui.open_form(case.dag, has_params=has_params)
    if not case.typed and ui.can_submit() == (case.state == NO_RUN):
        raise FormFault(f"the button is {'not ' if case.state == NO_RUN else ''}grey with the defaults")
    if case.state == NO_RUN:
        return {"run": NO_RUN, "form_seconds": round(time.monotonic() - started, 1)}
    ui.fill(case.typed)
    if not ui.can_submit():
        raise FormFault("the button is grey")
    shown = ui.shown_conf() if has_params else ""
    run = ui.submit(case.dag)
    form_seconds, started = time.monotonic() - started, time.monotonic()
    check_conf(case, shown, api, run)
    state = wait_for_run(api, case.dag, run)
    states = {name: str(task["state"]) for name, task in api.tasks(case.dag, run).items()}
    if state != case.state or {name: states.get(name) for name in case.tasks} != dict(case.tasks):
        raise FormFault(f"the run is {state} and its tasks are {states}")
    return {
        "run": state,
        "tasks": states,
        "form_seconds": round(form_seconds, 1),
        "run_seconds": round(time.monotonic() - started, 1),
        "run_id": run,
    }


def check_conf(case: Case, shown: str, api: Airflow, run: str) -> None:
    """Raises FormFault unless the run has the DAG's defaults, what was typed, and what the form showed."""
    params = api.get(f"/api/v2/dags/{case.dag}/details")["params"]
    conf = api.get(f"/api/v2/dags/{case.dag}/dagRuns/{run}")["conf"]
    expected = {name: param["value"] for name, param in params.items()} | dict(case.typed)
    if conf != expected:
        raise FormFault(f"the run's conf is {conf}, not {expected}")
    if not json.dumps(conf, indent=2, ensure_ascii=False).startswith(shown):
        raise FormFault(f"the form showed {shown}, the run's conf is {conf}")


def wait_for_run(api: Airflow, dag: str, run: str) -> str:
    """The run's last state. Raises FormFault when it takes too long. A server that does not answer is asked again."""
    deadline, state = time.monotonic() + RUN_SECONDS, "unknown"
    while state not in {"success", "failed"}:
        if time.monotonic() > deadline:
            raise FormFault(f"after {RUN_SECONDS:.0f} s the run is {state}")
        time.sleep(1)
        try:
            state = api.run_state(dag, run)
        except NotReadyError as error:
            state = f"unknown: {error}"
    return state


def plan_clean(table: Path) -> None:
    """As a writer with asynchronous cleans does."""
    run_hudictl("schedule", "clean", str(table), "--option", "hoodie.clean.commits.retained=1")


def run_hudictl(*arguments: str) -> None:
    """Raises FormFault when it fails."""
    command = [str(Path(sys.executable).with_name("hudictl")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FormFault(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")


def try_required(ui: AirflowUI) -> dict[str, Any]:
    """The judgement itself: a required text without a default keeps the button grey until something is typed."""
    ui.open_form(CONTROL)
    before = ui.can_submit()
    ui.fill({"text": "something"})
    after = ui.can_submit()
    if before or not after:
        raise FormFault(f"the button can be pressed without the text: {before}, with it: {after}")
    return {"without_text": before, "with_text": after}


def try_log(ui: AirflowUI, run: str) -> dict[str, Any]:
    """The page of the compaction's log shows how far it is and what came of it."""
    text = ui.log("hudi_compaction", run, "compact", LOG_LINES[-1])
    missing = [line for line in LOG_LINES if line not in text]
    if missing:
        raise FormFault(f"the log of the compaction does not show {missing}: {text}")
    return {"shows": list(LOG_LINES)}


def try_refusal(ui: AirflowUI) -> dict[str, Any]:
    """What is no instant is refused in the form, and no run is made."""
    ui.open_form("hudi_repair")
    ui.fill({"verb": "restore", "instant": "yesterday", **YES})
    return {"shows": ui.refusal("does not match")}


def try_connection(ui: AirflowUI, api: Airflow, warehouse: Path) -> dict[str, Any]:
    """A connection of type hudi is added and edited, and its Test button is pressed where a folder is and is not."""
    ui.add_connection("lake", "Apache Hudi", {"host": str(warehouse / "none"), "element_region": "eu-north-1"})
    added = api.get("/api/v2/connections/lake")
    if added["conn_type"] != "hudi" or json.loads(added["extra"])["region"] != "eu-north-1":
        raise FormFault(f"the connection form stored {added}")
    without_port = ui.test_connection("lake")
    api.change_connection("lake", {"conn_type": "hudi", "port": 0}, "port")
    red = ui.test_connection("lake")
    ui.edit_connection("lake", {"host": str(warehouse)})
    green = ui.test_connection("lake")
    if "Failed" not in red or "There is no folder" not in red or "Successful" not in green:
        raise FormFault(f"the Test button said {red!r} of a folder that is not there, {green!r} of one that is")
    return {"no_folder": red, "folder": green, "no_folder_no_port": without_port}


def store(found: Mapping[str, Any], hidden: Sequence[Path]) -> None:
    """Writes the result without the machine's folders."""
    text = json.dumps(found, indent=2)
    for folder in hidden:
        text = text.replace(str(folder), "…")
    RESULTS.write_text(text + "\n")
    print(text)


def outcomes(ui: AirflowUI, api: Airflow, tables: Tables, dag: str | None) -> Iterator[dict[str, Any]]:
    """What came of each form, then of the log, a refusal and the connection form; with `fault` where it went wrong.
    With `dag` of its forms alone.
    """
    compaction = ""
    for case in (case for case in cases(tables) if dag in (None, case.dag)):
        entry: dict[str, Any] = {"dag": case.dag, "case": case.name, "typed": dict(case.typed)}
        try:
            done = submit(case, ui, api, tables.demo)
            run = done.pop("run_id", "")
            compaction = run if case.dag == "hudi_compaction" else compaction
            entry |= done
        except (FormFault, PageError, NotReadyError) as error:
            entry["fault"] = str(error)
        print(json.dumps(entry), file=sys.stderr, flush=True)
        yield entry
    if dag is not None:
        return
    attempts: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("required text without a default", lambda: try_required(ui)),
        ("log of a task", lambda: try_log(ui, compaction)),
        ("instant that is none", lambda: try_refusal(ui)),
        ("connection of type hudi", lambda: try_connection(ui, api, tables.demo.parent)),
    ]
    for name, attempt in attempts:
        try:
            yield {"page": name, **attempt()}
        except (FormFault, PageError, NotReadyError) as error:
            yield {"page": name, "fault": str(error)}


def merged(tried: Sequence[dict[str, Any]], commit: str, stored: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What was tried now, with the commit, and of what is stored the forms of other DAGs and, where no page was tried,
    the pages.
    """
    now = [{"commit": commit, **entry} for entry in tried]
    dags = {entry["dag"] for entry in now if "dag" in entry}
    kept = [entry for entry in stored.get("forms", ()) if entry["dag"] not in dags]
    pages = [entry for entry in now if "page" in entry] or stored.get("pages", [])
    return {"forms": [*kept, *(entry for entry in now if "dag" in entry)], "pages": [*pages]}


def main() -> int:
    """Starts Airflow and the browser, tries everything, stores what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dag", choices=sorted(path.stem for path in DAGS.glob("*.py")))
    dag = parser.parse_args().dag
    scratch = Path(tempfile.mkdtemp(prefix="airflow-hudi-forms-"))
    home = scratch / "demo-up"
    try:
        dags = scratch / "dags"
        shutil.copytree(DAGS, dags, ignore=shutil.ignore_patterns("__pycache__"))
        (dags / f"{CONTROL}.py").write_text(CONTROL_DAG)
        state = up.up(home, launch=partial(up.launch_airflow, timeout=RUN_SECONDS, dags=dags))
        tables = make_tables(Path(state.table), scratch)
        api = Airflow(state.url, state.login)
        check_complete(cases(tables), api)
        if dag not in (None, "hudi_compaction"):
            run_hudictl("run", "compaction", state.table, "--engine", "local")  # as the first of all cases does
        with open_page() as page:
            tried = list(outcomes(AirflowUI(page, state.url, state.login), api, tables, dag))
    finally:
        up.down(home)
        shutil.rmtree(scratch)
    stored = json.loads(RESULTS.read_text()) if dag is not None else {}
    parts = merged(tried, head_commit(), stored)
    faults = [entry for entries in parts.values() for entry in entries if "fault" in entry]
    found = {
        "machine": machine(),
        "airflow": version("apache-airflow"),
        "chromium": VERSION,
        "tried": sum(map(len, parts.values())),
        "faults": len(faults),
        **parts,
    }
    store(found, [scratch, ROOT])
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
