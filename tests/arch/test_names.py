"""Where tests lie and what things are called: a module's test is found by its name, and names are of the field."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ("hudi_core", "hudi_health", "hudi_spark", "hudi_submit", "hudi_cli")
PRODUCT = ("airflow_hudi", *(f"spark_jobs/{package}" for package in ENGINE))
CORE = ROOT / "spark_jobs" / "hudi_core"
CORE_TESTS = ROOT / "tests" / "unit" / "hudi_core"
MAX_MODULES = 16
LINES_WITHOUT_A_TEST = 60

# fmt: off
PRIVATE_WORDS = (
    "anew", "asked", "beginning", "beginnings", "begun", "facts", "hears", "left_out", "nobody", "of_rows",
    "settled", "somebody", "standing", "stands", "stuck", "together", "told", "traces", "untold", "wanted",
    "weightless", "whoever", "witnesses",
)
# fmt: on
"""Words of no Hudi user, each a part of a name or several parts of one (the field's: docs/internals/glossary.md)."""

UNDOING = re.compile(
    r"_(undo|undoes|undoing|undone|(?:unroll|revert|withdr|cancel|discard)[a-z]*"
    r"|(?:take|takes|taken|took|taking)(?:_[a-z]+)?_back|(?:give|gives|given|gave|giving)(?:_[a-z]+)?_up)_"
)
"""What is rolled back, restored or abandoned is called so, and nothing else."""

OF_OTHERS = ("cancel", "discard")
"""Names of futures, and of sets and uploads."""

OWN = re.compile(r"own(_(timeline|instant)s?)?")
"""The metadata timeline, and its instants."""

PARTITION_TYPES_IN = ("metadata_table", "services/metadata", "services/indexing")
"""Where `kind` would be a partition type of the metadata table."""


def product_modules() -> Iterator[Path]:
    for folder in PRODUCT:
        yield from sorted(path for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py")


def identifiers(tree: ast.AST) -> set[str]:
    """Every name that a module chooses or uses, but for keywords of calls: NumPy has a `kind`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found |= {*name.split("."), other or ""}
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                found.add(name)
    return found


def parts(name: str) -> str:
    """`isTakenBack`, `TAKEN_BACK`, `_taken_back`: the words in lower case, an underscore between two."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return split.strip("_").lower()


def private_words(name: str, *, kinds: bool = False) -> list[str]:
    """Words of the list in a name; `kind` and `kinds` too where they would be partition types."""
    said = f"_{parts(name)}_"
    found = [word for word in PRIVATE_WORDS if f"_{word}_" in said]
    if parts(name) not in OF_OTHERS:
        found += UNDOING.findall(said)
    if OWN.fullmatch(parts(name)) or re.match(r"_own_(timeline|instant)", said):
        found.append("own")
    return found + (["kind"] if kinds and re.search("_kinds?_", said) else [])


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("is_taken_back", ["taken_back"]),
        ("TakenBackError", ["taken_back"]),
        ("takes_them_back", ["takes_them_back"]),
        ("rolled_back", []),
        ("FileUndo", ["undo"]),
        ("without_undone", ["undone"]),
        ("revertToRequested", ["revert"]),
        ("_cancelled_blocks", ["cancelled"]),
        ("give_up", ["give_up"]),
        ("discard", []),
        ("discard_files", ["discard"]),
        ("UNTOLD", ["untold"]),
        ("own_timelines", ["own"]),
        ("own", ["own"]),
        ("owner", []),
        ("outstanding", []),
        ("_kinds", ["kind"]),
        ("mankind", []),
    ],
)
def test_words_of_a_name(name: str, found: list[str]) -> None:
    assert private_words(name, kinds=True) == found


def test_no_private_word_is_a_name() -> None:
    found = {}
    for path in product_modules():
        kinds = any(f"hudi_core/{folder}/" in path.as_posix() for folder in PARTITION_TYPES_IN)
        names = {path.stem, path.parent.name} | identifiers(ast.parse(path.read_text()))
        if bad := sorted(name for name in names if private_words(name, kinds=kinds)):
            found[path.relative_to(ROOT).as_posix()] = bad
    assert found == {}


def test_folders_are_small() -> None:
    modules = Counter(path.parent.relative_to(ROOT).as_posix() for path in product_modules())
    assert {folder: count for folder, count in modules.items() if count > MAX_MODULES} == {}


def test_every_module_has_a_test_of_its_name() -> None:
    missing = [
        relative.as_posix()
        for path in sorted(CORE.rglob("*.py"))
        if path.name != "__init__.py"
        and len(path.read_text().splitlines()) > LINES_WITHOUT_A_TEST
        and not (CORE_TESTS / (relative := path.relative_to(CORE)).with_name(f"test_{path.name}")).is_file()
    ]
    assert missing == []


def test_every_test_is_named_after_a_module() -> None:
    """`test_job_claims.py` is a part of the tests of `job.py`."""
    lost = []
    for path in sorted(CORE_TESTS.rglob("test_*.py")):
        folder, name = CORE / path.parent.relative_to(CORE_TESTS), path.stem.removeprefix("test_")
        if not any(name == module.stem or name.startswith(f"{module.stem}_") for module in folder.glob("*.py")):
            lost.append(path.relative_to(ROOT).as_posix())
    assert lost == []


def test_unit_holds_tests_only() -> None:
    """What tests share is in tests/support."""
    others = [path for path in (ROOT / "tests" / "unit").rglob("*.py") if not path.name.startswith("test_")]
    assert {path.name for path in others} <= {"__init__.py", "conftest.py"}
