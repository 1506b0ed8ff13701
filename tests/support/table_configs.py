"""Properties of made-up tables."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.config.table_config import TableConfig

VERSION_9 = {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}


def config_of(properties: Mapping[str, str] | None = None) -> TableConfig:
    """A copy-on-write table of version 6 without partitions, unless `properties` say otherwise."""
    raw = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        **(properties or {}),
    }
    return TableConfig.parse("\n".join(f"{name}={value}" for name, value in raw.items()).encode())
