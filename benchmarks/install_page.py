"""The commands of docs/use/install.md's first section, so that the page and the benchmark cannot differ.

A step is a paragraph that begins with its number, and the shell blocks below it. The word behind `sh` says whose block
it is: of `pip` or `uv`, the reader's own settings (`yours`), what stays in the foreground (`server`), the look at the
result (`result`); none: everybody's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "use" / "install.md"
SECTION = "## A first service on your own table\n"
INSTALLERS = ("pip", "uv")
KINDS = ("", "yours", "server", "result", *INSTALLERS)

_STEP = re.compile(r"^(?P<number>\d+)\\\. (?P<title>.+?)[.:,](?=\s)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```sh *(?P<kind>[a-z]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """Commands of one step."""

    step: int
    title: str
    kind: str
    commands: str


def blocks(installer: str, page: str | None = None) -> list[Block]:
    """The blocks that a reader runs who uses `installer`, in order.

    Raises ValueError for a page without the section, a block outside a step, or a word that is none of KINDS.
    """
    text = PAGE.read_text() if page is None else page
    if SECTION not in text:
        raise ValueError(f"the page has no section {SECTION.strip()!r}")
    section = text.split(SECTION, 1)[1].split("\n## ", 1)[0]
    steps = list(_STEP.finditer(section))
    found = []
    for block in _BLOCK.finditer(section):
        above = [step for step in steps if step.start() < block.start()]
        if not above:
            raise ValueError(f"a block stands before the first step: {block['text']!r}")
        if block["kind"] not in KINDS:
            raise ValueError(f"the block of {block['kind']!r} belongs to nobody: {block['text']!r}")
        if block["kind"] not in INSTALLERS or block["kind"] == installer:
            step = above[-1]
            title = " ".join(step["title"].split())
            found.append(Block(int(step["number"]), title, block["kind"], block["text"]))
    return found
