"""docs/reference/options.md is what docs/reference/make_options.py generates, and has every option there is."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import hudi_core
from docs.reference.make_options import GROUPS, PAGE, page
from hudi_core.config import metadata_config
from hudi_core.config.metadata_config import METADATA_TABLE_KEYS
from hudi_core.config.options import KEYS

SOURCE = Path(hudi_core.__path__[0]) / "metadata_table"


def test_the_page_is_what_is_generated() -> None:
    assert PAGE.read_text() == page(), "run `make options`"


def test_every_option_is_in_one_group() -> None:
    assert Counter(key.name for group in GROUPS for key in group.keys) == Counter(
        key.name for key in (*KEYS, *METADATA_TABLE_KEYS)
    )


def test_every_option_is_there_under_all_its_names() -> None:
    text = PAGE.read_text()
    names = [name for key in (*KEYS, *METADATA_TABLE_KEYS) for name in (key.name, *key.aliases)]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_option_of_the_metadata_table_is_there() -> None:
    """Those that the modules of the partition types, and of the metadata table's own services, read by name."""
    text = PAGE.read_text()
    modules = [path for name in ("partitions", "services") for path in (SOURCE / name).glob("*.py")]
    modules.append(Path(metadata_config.__file__))
    names = {name for path in modules for name in re.findall(r'"((?:hoodie|spark)\.[a-z.A-Z_]+)"', path.read_text())}
    assert "hoodie.metadata.compact.max.delta.commits" in names
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_lines_end_at_120_columns() -> None:
    assert [line for line in PAGE.read_text().splitlines() if len(line) > 120] == []
