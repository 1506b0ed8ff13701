"""Mutations of a table's tree: files cut, grown, lost, renamed, doubled, replaced by what is no file, claims and locks
that no process made.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

from tests.hostile.change import Nature, NotApplicableError
from tests.hostile.log_blocks import blocks_of
from tests.hostile.values import NUMBERS, TEXTS, change_document, odd_text

SPARSE = 3 << 30
"""Bytes of a file that takes no room, but as much memory as it says where it is read whole."""

Placed = tuple[Nature, str]
Place = Callable[[Path, str, Random, Sequence[str]], Placed]
"""`place(base, path, random, siblings)`; siblings are the paths of files of the same kind."""


def cut(base: Path, path: str, random: Random, _: Sequence[str]) -> Placed:
    data = (base / path).read_bytes()
    if not data:
        raise NotApplicableError
    length = random.choice((0, 1, len(data) - 1, len(data) // 2, random.randrange(len(data))))
    ends = {0, *(block.offset + block.length for block in blocks_of(data))}
    (base / path).write_bytes(data[:length])
    # Hudi cannot tell a log that ends with a block, or with less than a magic, from a whole one.
    whole = data.startswith(b"#HUDI#") and any(0 <= length - end < 6 for end in ends)
    text = path.endswith((".properties", "_partition_metadata", "_version_")) or "/MARKERS" in path
    return (Nature.EDIT if whole or text else Nature.DAMAGE), f"cut to {length} of {len(data)} bytes"


def grown(base: Path, path: str, random: Random, _: Sequence[str]) -> Placed:
    if random.randrange(2):
        os.truncate(base / path, SPARSE)
        return Nature.DAMAGE, f"{SPARSE} bytes"
    data = (base / path).read_bytes()
    tail = random.choice((b"\0" * 100, data, b"#HUDI#", bytes(range(256)), b"\n\n{}"))
    if not tail:
        raise NotApplicableError
    (base / path).write_bytes(data + tail)
    return Nature.EDIT, f"{len(tail)} bytes appended"


def zeroed(base: Path, path: str, random: Random, _: Sequence[str]) -> Placed:
    data = bytearray((base / path).read_bytes())
    if not data:
        raise NotApplicableError
    at = random.choice((0, random.randrange(len(data))))
    length = random.choice((len(data) - at, min(512, len(data) - at)))
    data[at : at + length] = bytes(length)
    (base / path).write_bytes(data)
    return (Nature.DAMAGE if length == len(data) else Nature.EDIT), f"{length} zeros at {at}"


def flipped(base: Path, path: str, random: Random, _: Sequence[str]) -> Placed:
    data = bytearray((base / path).read_bytes())
    if not data:
        raise NotApplicableError
    for _ in range(random.choice((1, 1, 3, 20))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    (base / path).write_bytes(data)
    return Nature.EDIT, "bits flipped"


def swapped(base: Path, path: str, random: Random, siblings: Sequence[str]) -> Placed:
    others = [other for other in siblings if other != path]
    if not others:
        raise NotApplicableError
    other = random.choice(others)
    shutil.copyfile(base / other, base / path)
    return Nature.EDIT, f"content of {other}"


def lost(base: Path, path: str, random: Random, _: Sequence[str]) -> Placed:
    (base / path).unlink()
    return Nature.EDIT, "removed"


def renamed(base: Path, path: str, random: Random, siblings: Sequence[str]) -> Placed:
    folder, _, name = path.rpartition("/")
    new = _odd_name(name, random, [sibling.rpartition("/")[2] for sibling in siblings])
    try:
        if random.randrange(2):
            (base / path).rename(base / folder / new)
            return Nature.EDIT, f"renamed to {new[:80]!r}"
        shutil.copyfile(base / path, base / folder / new)
    except (OSError, ValueError) as error:
        raise NotApplicableError from error
    return Nature.EDIT, f"copied to {new[:80]!r}"


def _odd_name(name: str, random: Random, names: Sequence[str]) -> str:
    number = list(re.finditer(r"\d+", name))
    if number and random.randrange(3):
        match = random.choice(number)
        new = random.choice(("0", "20991231235959999", "9" * 20, "1" * 200, "\u0661\u0662", str(int(match[0]) + 1)))
        return name[: match.start()] + new + name[match.end() :]
    return odd_text(name, random, names).replace("/", "%2F").replace("\0", "%00") or "empty"


def second_token(base: Path, path: str, random: Random, _: Sequence[str]) -> Placed:
    """The same base file by two names of the same slice: rows may not be doubled."""
    new = re.sub(r"_(\d+)-(\d+)-(\d+)_(\d+\.parquet)$", r"_\1-\2-9\3_\4", path)
    if new == path:
        raise NotApplicableError
    (os.link if random.randrange(2) else shutil.copyfile)(base / path, base / new)
    return Nature.DAMAGE, "the same file with another write token"


def no_file(base: Path, path: str, random: Random, _: Sequence[str]) -> Placed:
    """A pipe, a socket, a link or a folder in the place of the file."""
    target = base / path
    kind = random.choice(("pipe", "socket", "link", "link to itself", "link to a folder", "folder"))
    aside = base.parent / "aside"
    shutil.move(target, aside)
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "socket":
        here = os.open(target.parent, os.O_RDONLY)
        try:
            with closing(socket.socket(socket.AF_UNIX)) as listener:  # a socket's path may have 108 bytes only
                listener.bind(f"/proc/self/fd/{here}/s")
            (target.parent / "s").rename(target)
        finally:
            os.close(here)
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to({"link": aside, "link to itself": target, "link to a folder": base.parent}[kind])
    return (Nature.EDIT if kind == "folder" else Nature.DAMAGE), f"a {kind}"


ON_EVERY_KIND: tuple[Place, ...] = (
    *(cut, cut, cut, grown, grown, zeroed, flipped, flipped),
    *(swapped, lost, renamed, renamed, no_file, no_file, second_token),
)


def claim_document(random: Random) -> tuple[bytes, str]:
    """A claim that no process of ours wrote."""
    document = {
        "version": 1,
        "token": "token",
        "owner": {
            "text": random.choice(("someone", *TEXTS)),
            "host": "elsewhere",
            "pid": random.choice((1, 2, 99, *NUMBERS)),
            "boot_id": "",
            "pid_namespace": "",
            "process_start": "1",
            "run_id": "",
        },
        "interval_ms": random.choice((60_000, *NUMBERS)),
        "tolerable_misses": random.choice((2, *NUMBERS)),
    }
    what = change_document(document, random, typed=False) if random.randrange(2) else "a foreign claim"
    return json.dumps(document).encode("utf-8", "surrogatepass"), what


def foreign_claim(base: Path, instant: str, random: Random) -> tuple[str, str]:
    """A claim, a decision, a released mark, a heartbeat or a lock that no process made; its path and what it is."""
    folder = f".hoodie/.airflow_hudi/claims/{instant}"
    epoch = random.choice((0, 1, 7, 999_999))
    step = random.randrange(8)
    data, what = claim_document(random)
    if step == 0:
        path, data = f".hoodie/.heartbeat/{instant}", b""
    elif step == 1:
        path, data = random.choice((".hoodie/lock", ".hoodie/.locks/table_lock.json")), random.choice((b"", data, b"{"))
    elif step == 2:
        decision = {"version": 1, "action": "compaction", "completion_time": None, "content": random.choice(TEXTS)}
        what = change_document(decision, random, typed=False)
        path, data = f"{folder}/{epoch:06d}.decision", json.dumps(decision).encode("utf-8", "surrogatepass")
    elif step == 3:
        path, data = f"{folder}/{random.choice(('000000.released', 'dropped.plan', '000001.heartbeat', 'x'))}", b""
    elif step == 4:
        path, data = f"{folder}/{epoch:06d}.json", random.choice((b"", b"[" * 100_000, bytes(1000), data[:50]))
    else:
        path = f"{folder}/{epoch:06d}.json"
    (base / path).parent.mkdir(parents=True, exist_ok=True)
    (base / path).write_bytes(data)
    if random.randrange(10) == 0:
        os.truncate(base / path, SPARSE)
    return path, what
