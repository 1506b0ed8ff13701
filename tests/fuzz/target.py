"""What is fuzzed, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from random import Random

from tests.fuzz.mutate import mutated


@dataclass(frozen=True)
class Target:
    """Where its inputs start from, and what reads one: `run` returns or raises a HudiError; anything else is a bug.

    `share` is the part of the asked number of inputs that it gets: one whose inputs are slow gets fewer. `spare_mib` is
    the address space that an input may take beside what the process has.
    """

    seeds: Callable[[], Sequence[bytes]]
    run: Callable[[bytes], None]
    share: float = 1.0
    mutate: Callable[[Sequence[bytes], Random], bytes] = mutated
    spare_mib: int = 1024


def target_of(name: str) -> Target:
    """The target of that name. A codec's process loads codecs only."""
    if name == "table":
        return import_module("tests.fuzz.table").TABLE  # type: ignore[no-any-return]
    return import_module("tests.fuzz.targets").CODECS[name]  # type: ignore[no-any-return]
