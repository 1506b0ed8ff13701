"""Processes of the engine import no pandas, and others still can."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

from hudi_core.engine.local import Processes

HIDE = (
    "import sys, importlib.util\nfrom hudi_core.engine.hidden_pandas import hide_pandas, show_pandas\nhide_pandas()\n"
)


def loaded(name: str) -> bool:
    import pyarrow as pa

    pa.array(["a list"])
    return name in sys.modules


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import pyarrow\npyarrow.array([1])\nprint('pandas' in sys.modules)", "False"),
        ("print(importlib.util.find_spec('pandas') is not None)", "True"),
        ("hide_pandas()\nshow_pandas()\nimport pyarrow\npyarrow.array([1])\nprint('pandas' in sys.modules)", "True"),
        ("try:\n    import pandas\nexcept ImportError as error:\n    print(error.name)", "pandas"),
    ],
)
def test_pandas_is_hidden_until_it_is_shown(program: str, expected: str) -> None:
    done = subprocess.run([sys.executable, "-c", HIDE + program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


@pytest.mark.slow
def test_processes_of_the_local_engine_import_none() -> None:
    processes = Processes(1)
    assert processes.submit(partial(loaded, "pyarrow")).result(60)
    assert not processes.submit(partial(loaded, "pandas")).result(60)
    processes.close()
