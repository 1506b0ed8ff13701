"""xxHash64, by which the metadata table names columns and partitions (org.apache.hudi.common.util.hash.HashID).

The native `xxhash` is used where it is installed; names are short, so a job that comes without it hashes them here.
"""

from __future__ import annotations

from collections.abc import Callable

_native: Callable[[bytes, int], int] | None
try:
    from xxhash import xxh64_intdigest as _native
except ImportError:
    _native = None

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def xxh64(data: bytes, seed: int) -> int:
    """The hash, unsigned; `seed` is unsigned 64 bits."""
    return int(_native(data, seed)) if _native is not None else xxh64_python(data, seed)


def xxh64_python(data: bytes, seed: int) -> int:
    """The hash without a native library; equal to xxh64."""
    position, size = 0, len(data)
    if size >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while position <= size - 32:
            lanes = [_round(lane, _word(data, position + 8 * index, 8)) for index, lane in enumerate(lanes)]
            position += 32
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = (seed + _P5) & _MASK
    return _finish(data, position, (value + size) & _MASK)


def _finish(data: bytes, position: int, value: int) -> int:
    size = len(data)
    while position <= size - 8:
        value = (_rotate(value ^ _round(0, _word(data, position, 8)), 27) * _P1 + _P4) & _MASK
        position += 8
    if position <= size - 4:
        value = (_rotate(value ^ _word(data, position, 4) * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        position += 4
    for octet in data[position:]:
        value = _rotate(value ^ octet * _P5 & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK


def _word(data: bytes, position: int, length: int) -> int:
    return int.from_bytes(data[position : position + length], "little")
