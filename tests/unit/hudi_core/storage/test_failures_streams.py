from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hudi_core.storage.failures import GuardedInput, GuardedOutput


class Calls(list[str]):
    """A guard that notes the calls and fails those named."""

    def __init__(self, *fails: str) -> None:
        super().__init__()
        self.fails = fails

    @contextmanager
    def __call__(self, call: str) -> Iterator[None]:
        self.append(call)
        yield
        if call in self.fails:
            raise OSError(call)


class Trickle(io.BytesIO):
    """Gives two bytes at a time, as a socket may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(2, size) if size is not None and size > 0 else size)


def test_a_read_is_whole_unless_the_file_ends() -> None:
    calls = Calls()
    with GuardedInput(Trickle(b"0123456789"), calls) as file:
        assert file.read(5) == b"01234"
        file.seek(8)
        assert (file.tell(), file.read(5), file.read(5)) == (8, b"89", b"")
        file.seek(0)
        target = bytearray(3)
        assert (file.readinto(target), bytes(target)) == (3, b"012")
        assert file.readall() == b"3456789"
    assert calls[-1] == "close"
    assert set(calls) == {"read", "close"}


def test_an_input_is_closed_once_whatever_happens() -> None:
    inner, calls = io.BytesIO(b"x"), Calls("close")
    file = GuardedInput(inner, calls)
    with pytest.raises(OSError, match="close"):
        file.close()
    file.close()
    assert (file.closed, inner.closed, calls) == (True, True, ["close"])


def test_a_file_is_finished_before_it_is_closed() -> None:
    inner, calls = io.BytesIO(), Calls()
    done: list[tuple[bool, bytes]] = []
    file = GuardedOutput(inner, calls, finish=lambda: done.append((inner.closed, inner.getvalue())))
    assert (file.write(memoryview(b"abc")), file.write(bytearray(b"d")), file.tell()) == (3, 1, 4)
    file.close()
    file.close()
    assert (done, inner.closed, calls) == ([(False, b"abcd")], True, ["write", "write", "close"])


@pytest.mark.parametrize("discards", [True, False])
def test_a_block_that_fails_discards_what_was_written(discards: bool) -> None:
    inner, calls, discarded = io.BytesIO(), Calls(), []
    file = GuardedOutput(inner, calls, discard=(lambda: discarded.append(True)) if discards else None)
    file.write(b"abc")
    with pytest.raises(ValueError, match="stop"), file:
        raise ValueError("stop")
    assert (discarded, inner.closed) == (([True], False) if discards else ([], True))
    assert file.closed


def test_the_garbage_collector_publishes_nothing() -> None:
    inner, calls = io.BytesIO(), Calls()
    file = GuardedOutput(inner, calls)
    file.write(b"abc")
    del file
    assert (inner.closed, calls) == (False, ["write"])
