"""One page of a headless Chromium, by its DevTools protocol: what a user sees is looked at, clicked and typed into."""

from __future__ import annotations

import itertools
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from benchmarks.chromium import chromium, environment

TIMEOUT_SECONDS = 60.0
# Only loopback pages are opened, and root has no sandbox.
FLAGS = ("--headless=shell", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1600,1400")
FIND = """
const visible = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden';
const all = selector => [...document.querySelectorAll(selector)].filter(visible);
const named = (selector, text) => all(selector).find(
  e => [e.innerText, e.getAttribute('aria-label'), e.title].some(t => (t || '').trim() === text));
"""
"""What the expressions of `Page` may use: all(selector), named(selector, text) find elements that are visible."""


class PageError(Exception):
    """The page is not as it should be; the text says what was waited for, and what is shown instead."""


class Page:
    """A tab. Expressions are JavaScript with the functions of FIND; `element` is one that gives an element."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._call("Page.enable")

    def open(self, url: str) -> None:
        """Goes to the address."""
        self._call("Page.navigate", url=url)

    def look(self, expression: str) -> Any:
        """The value of the expression, True for an element. Raises PageError when it throws."""
        found = f"(() => {{{FIND} const found = {expression}; return found instanceof Element ? true : found;}})()"
        answer = self._call("Runtime.evaluate", expression=found, returnByValue=True)
        if "exceptionDetails" in answer:
            raise PageError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression: str, what: str, timeout: float = TIMEOUT_SECONDS) -> Any:
        """Its value as soon as that is true. Raises PageError."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                found = self.look(expression)
            except PageError:
                # While a page loads it may have no body.
                found = None
            if found:
                return found
            if time.monotonic() > deadline:
                raise PageError(f"after {timeout:.0f} s there is no {what}; the page shows:\n{self.text()[-3000:]}")
            time.sleep(0.1)

    def text(self) -> str:
        """All that the page shows."""
        return str(self.look("document.body ? document.body.innerText : ''"))

    def click(self, element: str, what: str, timeout: float = TIMEOUT_SECONDS) -> None:
        """Clicks the middle of the element with the mouse, once it is there, enabled, not covered and at rest.

        Raises PageError.
        """
        place = f"""(() => {{
          const e = {element};
          if (!e || e.disabled || e.getAttribute('aria-disabled') === 'true') return null;
          e.scrollIntoView({{block: 'center'}});
          const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
          const top = document.elementFromPoint(x, y);
          return top && (e.contains(top) || top.contains(e)) ? {{x, y}} : null;
        }})()"""
        point, before = self.wait(place, what, timeout), None
        while point != before:
            time.sleep(0.15)
            point, before = self.wait(place, what, timeout), point
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **point)

    def type(self, element: str, text: str, what: str) -> None:
        """Puts the text into a field in place of what it holds, by the keyboard."""
        self.click(element, what)
        self.look(f"({element}).select ? ({element}).select() : null")
        self._call("Input.insertText", text=text)
        self.wait(f"({element}).value === {json.dumps(text)}", f"{text!r} in {what}")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            answer = json.loads(self._socket.recv(timeout=max(0.1, deadline - time.monotonic())))
            if answer.get("id") == number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']}")
                return dict(answer["result"])


@contextmanager
def open_page() -> Iterator[Page]:
    """A page of a browser of its own, which ends with it."""
    folder = chromium()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                str(folder / "chromium"),
                *FLAGS,
                f"--user-data-dir={profile}",
                "--remote-debugging-port=0",
                "about:blank",
            ],
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with connect(_address(process, Path(profile)), max_size=None) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen[bytes], profile: Path) -> str:
    """The socket of the first tab. Raises PageError."""
    port = profile / "DevToolsActivePort"
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if port.is_file() and (lines := port.read_text().splitlines()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=TIMEOUT_SECONDS) as answer:
                pages = [page for page in json.load(answer) if page["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise PageError(f"Chromium did not start (exit code {process.poll()})")
