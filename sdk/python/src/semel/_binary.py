"""Finds the semel binary."""

from __future__ import annotations

import os

from ._settings import unusable


def find() -> str:
    named = os.environ.get("SEMEL_BIN")
    if named:
        return named
    import shutil
    import sysconfig

    beside = os.path.join(sysconfig.get_path("scripts"), "semel.exe" if os.name == "nt" else "semel")
    if os.access(beside, os.X_OK):
        return beside
    on_path = shutil.which("semel")
    if on_path:
        return on_path
    raise missing("The semel binary is neither in this environment nor on the PATH.")


def missing(happened: str) -> Exception:
    return unusable(happened, "Install it (pip install semel), or set SEMEL_BIN to its path.", "binary_missing")
