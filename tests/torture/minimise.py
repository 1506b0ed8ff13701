"""Makes a failing program short: delta debugging over its steps (Zeller and Hildebrandt, ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

S = TypeVar("S")


def minimised(steps: Sequence[S], fails: Callable[[Sequence[S]], bool], may_go_on: Callable[[], bool]) -> list[S]:
    """A part of `steps`, in their order, that still fails, and from which no step can be left out.

    `steps` fail. A try is one call of `fails`; none is started once `may_go_on` is false, and then the shortest part so
    far is returned.
    """
    kept = list(steps)
    pieces = 2
    while kept and may_go_on():
        size = -(-len(kept) // pieces)
        for start in range(0, len(kept), size):
            if not may_go_on():
                return kept
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept, pieces = rest, max(2, pieces - 1)
                break
        else:
            if size == 1:
                return kept
            pieces = min(len(kept), pieces * 2)
    return kept
