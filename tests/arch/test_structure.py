"""The structure that the code must keep: layers, sizes, and what an import may cost."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("airflow_hudi", "spark_jobs", "demo", "benchmarks", "dags", "tests")
MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 80
MAX_COLUMNS = 120
TEXTS = (".md", ".sh", ".toml", ".yml", ".in", ".properties", "Makefile", "Dockerfile")


def modules() -> Iterator[Path]:
    for folder in SOURCES:
        yield from sorted((ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_layers_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_are_small() -> None:
    large = {
        name_of(path): lines for path in modules() if (lines := len(path.read_text().splitlines())) > MAX_MODULE_LINES
    }
    assert large == {}


def test_functions_are_small() -> None:
    large = {
        f"{name_of(path)}:{node.name}": length
        for path in modules()
        if (text := path.read_text()).count("\n") > MAX_FUNCTION_LINES
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    }
    assert large == {}


def test_no_module_is_named_after_nothing() -> None:
    assert [name_of(path) for path in modules() if path.stem in {"utils", "util", "common", "helpers", "misc"}] == []


def test_packages_hold_no_code_in_init() -> None:
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef, ast.If)
    for path in modules():
        if path.name == "__init__.py" and "tests" not in path.parts:
            tree = ast.parse(path.read_text())
            assert all(isinstance(node, allowed) for node in tree.body), name_of(path)
            assert len(path.read_text().splitlines()) <= 60, name_of(path)


def test_the_map_of_a_folder_names_its_modules_and_no_others() -> None:
    for path in modules():
        if path.name == "__init__.py" and name_of(path).startswith(("airflow_hudi/", "spark_jobs/")):
            names = {module.stem for module in path.parent.glob("*.py")} - {"__init__"}
            folders = {f"{folder.name}/" for folder in path.parent.iterdir() if folder.is_dir()} - {"__pycache__/"}
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            entries = re.findall(r"^- ``([\w/]+)``: ", text, re.MULTILINE)
            assert sorted(entries) == sorted(names | folders), name_of(path)


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import airflow_hudi", ("airflow", "pyarrow", "pyspark", "numpy")),
        (
            "import hudi_core.timeline.active, hudi_core.timeline.actions.compaction, hudi_core.config.table_config",
            ("pyarrow", "pyspark", "numpy", "pandas"),
        ),
        (
            "import hudi_core.storage.registry, hudi_core.storage.fsspec_store, hudi_core.verbs.request",
            ("pyarrow", "pyspark", "numpy"),
        ),
        (
            "import hudi_submit.job_files, hudi_submit.local_process, hudi_submit.spark_submit",
            ("airflow", "pyarrow", "pyspark", "numpy"),
        ),
        # What tasks run. The parser of predicates costs each of Spark's workers a quarter of a second.
        (
            "import hudi_core.services.clustering.units, hudi_core.services.compaction.merge_logs, "
            "hudi_core.services.write.row_shards, hudi_core.services.write.job, hudi_core.services.clean.job, "
            "hudi_core.query.read_plan, "
            "hudi_core.metadata_table.initialize.exchange, hudi_core.services.metadata.initialization",
            ("sqlglot", "pyspark"),
        ),
        # Each of Spark's workers imports what its units need: 30 modules more cost 4 % of a compaction's CPU time.
        (
            "import hudi_core.services.compaction.merge_slice",
            ("hudi_core.query", "hudi_core.metadata_table.read", "hudi_core.history"),
        ),
    ],
)
def test_imports_stay_light(statement: str, forbidden: tuple[str, ...]) -> None:
    program = f"import sys\n{statement}\nprint([name for name in {forbidden!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def tracked() -> list[str]:
    """The files of the project, as git knows them."""
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_lines_of_documents_end_at_120_columns() -> None:
    """Those of code are held by ruff. A row of a table and a line with an address cannot be wrapped."""
    long = [
        f"{name}:{number}"
        for name in tracked()
        if name.endswith(TEXTS) and (ROOT / name).is_file()
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        if len(line) > MAX_COLUMNS and not line.startswith("|") and "://" not in line
    ]
    assert long == []


def test_no_machine_path_is_in_the_project() -> None:
    marks = ["/" + "work/", "/" + "root/", "/" + "farm/"]
    for name in tracked():
        if name.endswith((".py", ".md", ".toml", ".yml", ".sh", "Makefile", ".json")) and (ROOT / name).is_file():
            text = (ROOT / name).read_text()
            assert not any(mark in text for mark in marks), name


MODULE = re.compile(r"[\w./*{},-]*\w\.py\b")
"""The path of a module in a document, or its name, or a pattern of several."""

PLACES = ("", "spark_jobs/", "spark_jobs/hudi_core/", "spark_jobs/hudi_core/metadata_table/", "tests/")
"""Where a document's paths may begin."""


def dead_modules(text: str, files: Collection[str]) -> list[str]:
    """The modules that a document names, by path or by name alone, and that are none of the files."""
    names = {name.rpartition("/")[2] for name in files}
    found = sorted(name for name in set(MODULE.findall(text)) if not re.search("[*{}]", name))
    return [
        name for name in found if not (any(place + name in files for place in PLACES) if "/" in name else name in names)
    ]


def test_documents_name_modules_that_exist() -> None:
    files = set(tracked())
    documents = [name for name in files if name.endswith(".md") and (ROOT / name).is_file()]
    dead = {name: gone for name in documents if (gone := dead_modules((ROOT / name).read_text(), files))}
    assert dead == {}
