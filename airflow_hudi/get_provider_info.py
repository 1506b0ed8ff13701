"""The description of this provider for Airflow, by its entry point `apache_airflow_provider`, and the connection's
form: provider_info.json, by Airflow's schema. The connection's test: hooks.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The file's object. It imports nothing of ours, since every Airflow command calls it."""
    info: dict[str, Any] = json.loads(Path(__file__).with_name("provider_info.json").read_text(encoding="utf-8"))
    return info
