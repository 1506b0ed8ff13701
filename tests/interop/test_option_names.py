"""Options under `hoodie.` are real Hudi's: their names are constants of its classes."""

from __future__ import annotations

import re
import zipfile

import pytest

from hudi_core.config.metadata_config import METADATA_TABLE_KEYS
from hudi_core.config.options import KEYS, misspelt
from tests.interop.bundle import bundle_jar

VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
NAME = re.compile(rb"\x01(..)(hoodie\.[a-z0-9_.\-]*[a-z0-9_\-])", re.DOTALL)
"""CONSTANT_Utf8 of a class file: a tag, the length in two bytes, the text."""
ELSEWHERE = ("hoodie.write.lock.dynamodb.", "hoodie.write.conflict.resolution.strategy")
"""In hudi-aws; and a name that an early release of ours had."""


@pytest.fixture(scope="module")
def names() -> frozenset[str]:
    found = set()
    for version in VERSIONS:
        with zipfile.ZipFile(bundle_jar(version)) as jar:
            for entry in jar.namelist():
                if entry.startswith("org/apache/hudi/") and entry.endswith(".class"):
                    texts = NAME.findall(jar.read(entry))
                    found |= {text.decode() for size, text in texts if int.from_bytes(size, "big") == len(text)}
    return frozenset(found)


def test_every_option_is_one_of_hudi(names: frozenset[str]) -> None:
    ours = {name for key in (*KEYS, *METADATA_TABLE_KEYS) for name in (key.name, *key.aliases)}
    assert len(names) > 500
    assert sorted(n for n in ours - names if n.startswith("hoodie.") and not n.startswith(ELSEWHERE)) == []


def test_no_option_of_hudi_is_taken_for_misspelt(names: frozenset[str]) -> None:
    assert misspelt(dict.fromkeys(names, "1")) == {}
