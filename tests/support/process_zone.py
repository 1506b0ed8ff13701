"""The time zone of this process, which LOCAL means."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Runs with the zone `name` of the IANA database."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", name)
        time.tzset()
        yield
    time.tzset()
