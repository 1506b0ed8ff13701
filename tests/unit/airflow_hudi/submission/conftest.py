"""What the tests of the ways to submit share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.submission_operators import SubmissionOperators


@pytest.fixture(scope="session")
def operators() -> Iterator[SubmissionOperators]:
    """The real operators of other providers, in a process of their own."""
    with SubmissionOperators() as process:
        yield process
