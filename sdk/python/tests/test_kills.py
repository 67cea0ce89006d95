"""Processes kill themselves around begin, act and settle, or are killed at any moment; then the same calls come again.

SEMEL_KILLS says how many kills each way of reaching a ledger gets (30). A kill takes its point by its number, so a failure
names how to repeat it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import World
from servers import TOKEN, Served

from semel.testing import Ledger

KILLS = int(os.environ.get("SEMEL_KILLS", "30"))
KILLER = Path(__file__).with_name("killed.py")
OWN = ["before begin", "begin is answered", "before act", "after act", "before settle", "settle is answered"]
SENT = ["begin is sent", "settle is sent"]
SIDECARS = ["sidecar before begin", "sidecar begin is sent", "sidecar after act", "sidecar settle is sent"]
CERTAIN = {
    "before begin": ("reply", 1),
    "begin is answered": ("doubt", 0),
    "before act": ("doubt", 0),
    "after act": ("doubt", 1),
    "before settle": ("doubt", 1),
    "settle is answered": ("reply", 1),
}


def kill_and_ask_again(points: list[str], env: dict[str, str], world: World, ledger: Ledger) -> None:
    # Half of the kills come at any moment.
    chosen = {n: "any" if n % 2 else points[n // 2 % len(points)] for n in range(1, KILLS + 1)}
    killer = [sys.executable, str(KILLER)]
    whole = [-2, -1, 0]  # nobody kills these: they show how long a call takes
    lines = [*(f"{n} none" for n in whole), *(f"{n} {point}" for n, point in chosen.items())]
    first = subprocess.run(killer, input="\n".join(lines), env=env, text=True, capture_output=True)
    assert first.returncode == 0, first.stderr
    killed = {int(line.split()[1]) for line in first.stdout.splitlines() if line.startswith("killed")}
    assert killed >= {n for n, point in chosen.items() if point in CERTAIN}
    sidecars = sum(point in SIDECARS for point in chosen.values())
    acted = Counter(map(int, world.acts()))

    again = subprocess.run([*killer, *map(str, chosen)], env=env, text=True, capture_output=True)
    assert again.returncode == 0, again.stderr
    answers = {n: line.split() for n, line in zip(chosen, again.stdout.splitlines(), strict=True)}
    acts = Counter(map(int, world.acts()))
    for n, point in chosen.items():
        kind, what = answers[n]
        told = f"kill {n}: {point}, {kind} {what}, {acted[n]} acts before and {acts[n]} after"
        if kind == "reply":  # it happened, exactly once
            assert (what, acts[n]) == (f"ch_{n}", 1), told
        else:  # nobody ran it a second time
            assert acts[n] == acted[n] <= 1, told
        assert (kind, acts[n]) == CERTAIN.get(point, (kind, acts[n])), told

    # The ledger shows the same: each effect once, and each doubt.
    effects = ledger.effects()
    doubts = {effect["effect_id"] for effect in effects if effect["state"] == "in_doubt"}
    assert doubts == {what for kind, what in answers.values() if kind == "doubt"}
    assert Counter(effect["state"] for effect in effects) == {
        "in_doubt": len(doubts), "applied": len(whole) + KILLS - len(doubts)
    }  # fmt: skip
    happened = sum(acts[n] for n, (kind, _) in answers.items() if kind == "doubt")
    print(f"{len(killed)} processes and {sidecars} sidecars killed, {len(acts)} keys acted, {len(doubts)} doubts, ", end="")
    print(f"of which {happened} had happened")


def test_of_the_process_that_holds_the_ledger(world: World, env: dict[str, str], semel_ledger: Ledger) -> None:
    kill_and_ask_again(OWN, env, world, semel_ledger)


def test_of_a_process_or_the_sidecar_beside_it(world: World, env: dict[str, str], semel_ledger: Ledger) -> None:
    kill_and_ask_again([*OWN, *SENT, *SIDECARS], {**env, "SEMEL_SDK": "sidecar"}, world, semel_ledger)


@pytest.fixture
def server(semel_ledger: Ledger, env: dict[str, str], tmp_path: Path) -> Iterator[Served]:
    # A server does not see that a client on another host has died: its claims are doubts at their deadline.
    policy = tmp_path / "serve.toml"
    policy.write_text('[[rule]]\nmatch = "fn:charge"\ntimeout = "1s"\n')
    served = Served({**env, "SEMEL_POLICY": str(policy)}, tmp_path / "log")
    served.start()
    yield served
    served.kill()


def test_of_a_process_through_a_server(
    world: World, env: dict[str, str], semel_ledger: Ledger, server: Served
) -> None:
    through = {**env, "SEMEL_LEDGER": server.address, "SEMEL_TOKEN": TOKEN}
    kill_and_ask_again([*OWN, *SENT], through, world, semel_ledger)
