"""This release's version. Written here, not looked up: the job zip carries no distribution metadata."""

from __future__ import annotations

VERSION = "0.1.0"
