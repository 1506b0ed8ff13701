"""Whether `make test` finds defects: `python -m benchmarks.mutations` changes one line of hudi_core at a time and runs
tests until one fails. Stores benchmarks/results/mutations.json.

A change removes a guard, swaps a comparison, negates a condition or moves a number by one. A seed chooses the changes,
at most one a module. The module's own tests run first, then all tests of the engine that need no JVM.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from benchmarks.measure import head_commit, machine, store

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "mutations.json"
CORE = Path("spark_jobs/hudi_core")
COUNT, SEED = 50, 49
SWAPPED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}
TESTS = [
    f"tests/{path}" for path in ["unit/hudi_core", "unit/hudi_health", "golden", "contract", "faults", "unit/hudi_cli"]
]
CHOSEN = "not conformance and not soak and not spark and not hudi and not airflow"
SECONDS, CPU_SECONDS = 7200, 1800
"""A change that makes a test run without end is found. By CPU, so that other work on the machine finds nothing."""


@dataclass(frozen=True)
class Mutation:
    """`new` stands for the source text `old` that begins at `line` and `column` of the module."""

    module: Path
    line: int
    column: int
    old: str
    new: str
    kind: str

    def apply(self, root: Path) -> None:
        """Changes the module below `root`."""
        path = root / self.module
        lines = path.read_text().splitlines(keepends=True)
        before = "".join(lines[: self.line - 1]) + lines[self.line - 1][: self.column]
        text = "".join(lines)
        assert text.startswith(before + self.old)
        path.write_text(before + self.new + text[len(before) + len(self.old) :])


def mutations(module: Path, text: str) -> Iterator[Mutation]:
    """Every change of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], (ast.Raise, ast.Return)):
            yield _mutation(module, text, node.test, "False", "removed guard")
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            swapped = ast.Compare(node.left, [SWAPPED[type(node.ops[0])], *node.ops[1:]], node.comparators)
            yield _mutation(module, text, node, f"({ast.unparse(swapped)})", "swapped comparison")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield _mutation(module, text, node, f"({ast.unparse(node.operand)})", "negated condition")
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            number = node.right
            if isinstance(number, ast.Constant) and type(number.value) is int:
                yield _mutation(module, text, number, str(number.value + 1), "off by one")


def _mutation(module: Path, text: str, node: ast.expr, new: str, kind: str) -> Mutation:
    old = ast.get_source_segment(text, node)
    assert old is not None
    line = text.splitlines()[node.lineno - 1]
    column = len(line.encode()[: node.col_offset].decode())
    return Mutation(module, node.lineno, column, old, new, kind)


def chosen(count: int, seed: int) -> list[Mutation]:
    """The changes of a seed: kinds in turn, at most one a module."""
    dice = random.Random(seed)
    modules = sorted((ROOT / CORE).rglob("*.py"))
    dice.shuffle(modules)
    kinds = ["removed guard", "swapped comparison", "negated condition", "off by one"]
    selected: list[Mutation] = []
    for path in modules:
        kind = kinds[len(selected) % len(kinds)]
        possible = [item for item in mutations(path.relative_to(ROOT), path.read_text()) if item.kind == kind]
        if possible:
            selected.append(dice.choice(possible))
        if len(selected) == count:
            break
    return selected


def failing(clone: Path, paths: Sequence[str]) -> str | None:
    """The first test that fails, in a clone; None where all pass."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", CHOSEN, *paths]
    command = ["prlimit", f"--cpu={CPU_SECONDS}", *pytest]
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": f"{clone}:{clone}/spark_jobs"}
    try:
        run = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no end"
    if run.returncode in (0, 5):
        return None
    lines = [line for line in run.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" - ")[0].split(" ", 1)[1] if lines else f"pytest ends with {run.returncode}"


def tried(mutation: Mutation, clone: Path) -> dict[str, Any]:
    """What found the change."""
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=clone, check=True)
    mutation.apply(clone)
    folder = clone / "tests/unit/hudi_core" / mutation.module.relative_to(CORE).parent
    own = sorted(map(str, folder.glob(f"test_{mutation.module.stem}*.py")))
    failed_test = (failing(clone, own) if own else None) or failing(clone, TESTS)
    return {
        "module": str(mutation.module),
        "line": mutation.line,
        "kind": mutation.kind,
        "change": f"{mutation.old} -> {mutation.new}",
        "found_by": failed_test,
    }


def main() -> int:
    """Ends with 0 when each change is found by what `make test` runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        clones: Queue[Path] = Queue()
        for number in range(given.workers):
            clone = Path(scratch) / str(number)
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
            clones.put(clone)

        def one(mutation: Mutation) -> dict[str, Any]:
            clone = clones.get()
            result = tried(mutation, clone)
            clones.put(clone)
            print(json.dumps(result), flush=True)
            return result

        with ThreadPoolExecutor(given.workers) as pool:
            results = list(pool.map(one, chosen(given.count, given.seed)))
    count_found = sum(result["found_by"] is not None for result in results)
    store(RESULTS, {"machine": machine(), "commit": head_commit(), "found": count_found, "mutations": results})
    return 0 if count_found == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
