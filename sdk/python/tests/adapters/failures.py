"""A tool that acts in the world and then ends as wanted, and the process that it takes with it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import semel

HERE = Path(__file__).parent
DIED = 9

Act = Callable[[str], Any]


def acting(file: str | os.PathLike[str], *endings: str) -> Act:
    """Acts first. Then it answers, loses its answer or dies, as the endings say in turn; the last one stays."""
    left = list(endings)

    def charge(customer: str) -> dict[str, str]:
        with open(file, "a") as world:  # one small O_APPEND write
            world.write(f"{customer}\n")
        ending = left.pop(0) if len(left) > 1 else left[0]
        if ending == "lose":
            raise TimeoutError("the answer was lost")
        if ending == "die":
            os._exit(DIED)
        return {"id": "ch_1"}

    return charge


def example(name: str) -> Any:
    """The module of an example. It has the name of its framework, so that name cannot import it."""
    spec = importlib.util.spec_from_file_location(f"{name}_example", HERE.parents[1] / "examples" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def crash(test: str, env: dict[str, str], guarded: bool = True) -> None:
    """Runs `crashing()` of a test's module in a process that its tool ends after it has acted."""
    without = "" if guarded else "import failures; failures.remove_guard(setattr); "
    program = f"import sys; sys.path[:0] = {[str(HERE), str(HERE.parent)]}; {without}import {test}; {test}.crashing()"
    done = subprocess.run([sys.executable, "-c", program], env=env, text=True, capture_output=True, timeout=300)
    assert done.returncode == DIED, done.stderr


def remove_guard(replace: Callable[[Any, str, Any], None]) -> None:
    """From here on, `semel.once` does nothing: the same program as it would be without semel."""
    replace(semel, "once", lambda fn=None, **_: fn or (lambda fn: fn))


def effect_id_in(text: str) -> str:
    found = re.search(r"ef_[0-9A-Z]+", text)
    assert found, f"no effect is named in: {text}"
    return found[0]
