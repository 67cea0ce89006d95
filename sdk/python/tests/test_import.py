from __future__ import annotations

import subprocess
import sys

from conftest import Python

import semel


def test_an_import_starts_nothing_and_loads_little(python: Python) -> None:
    done = python("""
        import threading
        assert threading.active_count() == 1
        heavy = {"asyncio", "subprocess", "ssl", "http.client", "pydantic", "sqlalchemy", "inspect", "dataclasses",
                 "json", "logging", "concurrent.futures"}
        assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
        assert not [name for name in os.listdir("/proc/self/task") if name != str(os.getpid())]
    """)
    assert done.returncode == 0, done.stderr


def test_python_m_semel_is_the_binary(env: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-m", "semel", "--version"], env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("semel ")
    missing = {**env, "SEMEL_BIN": "/no/such/semel"}
    done = subprocess.run([sys.executable, "-m", "semel"], env=missing, capture_output=True, text=True)
    assert done.returncode == 1
    assert "SEMEL_BIN" in done.stderr


def test_every_name_of_the_surface_is_there() -> None:
    for name in semel.__all__:
        assert getattr(semel, name).__doc__, name
