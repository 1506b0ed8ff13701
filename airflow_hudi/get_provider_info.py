"""Gives Airflow this provider's description, provider_info.json, by the entry point `apache_airflow_provider`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Returns provider_info.json. It imports no other module of ours, because every Airflow command calls it."""
    info: dict[str, Any] = json.loads(Path(__file__).with_name("provider_info.json").read_text(encoding="utf-8"))
    return info
