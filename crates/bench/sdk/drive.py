"""Drives one library in one process, in a directory of its own.

usage: drive.py MODULE DISTRIBUTION. Once it is ready it prints the version. Each line that it then reads is

call HOW INVOICE   one protected call of the tool, which does as it is told
fresh SECONDS      calls with keys never seen, from 16 threads; once
again SECONDS      the same keys: none of them runs

and what it prints is one line of JSON each. It ends when its input does.
"""

import importlib
import itertools
import json
import signal
import sys
import threading
import time
from importlib.metadata import version

import world

THREADS = 16

# Whatever hangs, the bench goes on.
signal.alarm(180)
charge = importlib.import_module(sys.argv[1]).charge
series = time.time_ns()  # a server may know the keys of an earlier process
seen = 0  # fresh calls


def main() -> None:
    print(json.dumps({"version": version(sys.argv[2])}), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        answer = call(*rest) if word == "call" else {"calls_per_second": rate(word, float(*rest))}
        print(json.dumps(answer), flush=True)


def call(how: str, invoice: str) -> dict:
    world.how = how
    try:
        return {"reply": charge(invoice)}
    except Exception as error:
        return {"raised": type(error).__name__}


def rate(word: str, seconds: float) -> float:
    global seen
    if word == "fresh":
        drive(lambda n: f"warm-{series}-{n}", 0.3)
    before = effects()
    count, took = drive(lambda n: f"fresh-{series}-{n if word == 'fresh' else n % seen}", seconds)
    ran, wanted = effects() - before, count if word == "fresh" else 0
    if ran != wanted:
        raise SystemExit(f"{ran} of {count} {word} calls ran, not {wanted}")
    seen = seen or count
    return count / took


def drive(name, seconds: float) -> tuple[int, float]:
    numbers, errors = itertools.count(), []
    started = time.monotonic()

    def caller() -> None:
        try:
            while time.monotonic() - started < seconds:
                charge(name(next(numbers)))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=caller) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return next(numbers), time.monotonic() - started


def effects() -> int:
    try:
        with open("effects", "rb") as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


main()
