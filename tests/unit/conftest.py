"""What all unit tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hudi_core.timeline.actions import content


@pytest.fixture(autouse=True, scope="module")
def damage_is_read_at_once() -> Iterator[None]:
    """A file that a test has cut short has no writer: the looks at it follow each other without a pause.

    `timeline/test_content.py`, where such files have writers, keeps the pauses.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "PAUSES_SECONDS", (0.0,) * len(content.PAUSES_SECONDS))
        yield
