"""`semel sdk --stdio`, one process beside ours; JSON objects on lines, both ways."""

from __future__ import annotations

import itertools
import json
import os
import select
import subprocess
import threading
from typing import Any

from ._binary import find, missing
from ._errors import SemelError, error_from
from ._settings import Settings, unusable
from ._transport import Answer, Lost

_LINE_MAX = (4 << 20) + (64 << 10)  # a body of 4 MiB and its envelope
_STDERR_KEPT = 4096
_END_WAIT = 10  # seconds for it to write what it holds


class Sidecar:
    in_process = False

    def __init__(self, settings: Settings, opening: threading.RLock) -> None:
        self._settings = settings
        self._opening = opening
        self._process: Process | None = None

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        slot = Slot()
        self._send(slot, method, path, body)
        return slot.wait()

    async def aask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        # No thread waits here: twelve tasks may wait for one that still needs to settle.
        slot = AsyncSlot()
        self._send(slot, method, path, body)
        return await slot.wait_async()

    def close(self, dies: bool = False) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def abandon(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.disown()

    def kill(self) -> None:
        """For tests: as if the machine had lost it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _send(self, slot: Slot, method: str, path: str, body: dict[str, Any] | None) -> None:
        request: dict[str, Any] = {"method": method, "path": path}
        if body is not None:
            request["body"] = body
        text = json.dumps(request, allow_nan=False, separators=(",", ":"))
        if len(text) > _LINE_MAX:
            slot.set((413, {"detail": "The call is larger than 4 MiB. Nothing was sent."}))
            return
        self._running().send(slot, text)

    def _running(self) -> Process:
        process = self._process
        if process is None or process.over:
            with self._opening:
                process = self._process
                if process is None or process.over:
                    process = self._process = Process(self._settings)
        return process


class Slot:
    """Where one caller waits for its answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._answer: Answer | Exception | None = None

    def set(self, answer: Answer | Exception) -> None:
        self._answer = answer
        self._lock.release()

    def wait(self) -> Answer:
        self._lock.acquire()
        return _read(self._answer)


class AsyncSlot(Slot):
    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Answer | Exception] = self._loop.create_future()

    def set(self, answer: Answer | Exception) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake, answer)
        except RuntimeError:
            pass  # the loop is closed: its tasks are gone

    def _wake(self, answer: Answer | Exception) -> None:
        if not self._future.done():
            self._future.set_result(answer)

    async def wait_async(self) -> Answer:
        return _read(await self._future)


def _read(answer: Answer | Exception | None) -> Answer:
    if isinstance(answer, Exception):
        raise answer
    assert answer is not None
    return answer


class Process:
    """One sidecar. Once it is over, every caller hears so and the next call starts another."""

    def __init__(self, settings: Settings) -> None:
        self._binary = binary = find()
        theirs_in, self._stdin = os.pipe()
        self._stdout, theirs_out = os.pipe()
        self._stderr, theirs_err = os.pipe()
        try:
            self._child = subprocess.Popen(
                [binary, "sdk", "--stdio"],
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=theirs_err,
                env=settings.environment(),
                start_new_session=True,  # Ctrl-C is for us: it still has to settle
            )
        except OSError as error:
            self._close_all()
            raise missing(f"{binary} cannot be started: {error.strerror}.") from error
        finally:
            for end in (theirs_in, theirs_out, theirs_err):
                os.close(end)
        self.over = False
        self._greeted = False
        self._words = b""
        self._slots: dict[int, Slot] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="semel", daemon=True).start()

    def send(self, slot: Slot, text: str) -> None:
        with self._lock:
            if self.over:
                raise Lost("the sidecar ended")
            number = next(self._ids)
            self._slots[number] = slot
            line = memoryview(f'{{"id":{number},{text[1:]}\n'.encode())
            whole = len(line)
            try:
                while line:
                    line = line[os.write(self._stdin, line) :]
            except OSError:
                pass  # it is ending; the reader tells everybody
            except BaseException:
                if 0 < len(line) < whole:
                    self._child.kill()  # half a line would spoil the next one
                raise

    def end(self) -> None:
        # Not waited for: all that was asked is answered, and our own exit should not take longer.
        with self._lock:
            self._close("_stdin")

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()

    def disown(self) -> None:
        # The parent's sidecar must see the end of its stdin when the parent ends, so no copy may stay open here.
        self._close_all()
        self._child.returncode = 0  # not our child: nothing to wait for

    def _close_all(self) -> None:
        for end in ("_stdin", "_stdout", "_stderr"):
            self._close(end)

    def _close(self, end: str) -> None:
        fd = getattr(self, end)
        setattr(self, end, -1)  # first: a fork in between must not close the number again
        if fd >= 0:
            os.close(fd)

    def _read(self) -> None:
        poll = select.poll()
        for fd in (self._stdout, self._stderr):
            poll.register(fd, select.POLLIN)
        buffer, answering = bytearray(), True
        trouble: Exception | None = None
        try:
            while answering:
                for fd, _ in poll.poll():
                    data = os.read(fd, 1 << 16)
                    if not data:
                        poll.unregister(fd)
                        answering = answering and fd != self._stdout  # a grandchild may hold stderr for long
                    elif fd == self._stderr:
                        self._words = (self._words + data)[-_STDERR_KEPT:]
                    else:
                        start = len(buffer)
                        buffer += data
                        if data.find(b"\n") >= 0:
                            end = buffer.rfind(b"\n", start)
                            lines = bytes(buffer[:end])
                            del buffer[: end + 1]
                            for line in lines.split(b"\n"):
                                self._take(line)
        except Exception as error:
            trouble = error
        self._finish(trouble)

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        # We ask without waiting for the greeting, so its first answer may come before it.
        if "id" in message:
            slot = self._slots.pop(message["id"], None)
            if slot is not None:
                slot.set((message["status"], message.get("body") or {}))
        elif "semel" not in message:
            raise error_from(500, {"what_happened": message.get("detail"), **message})
        elif message.get("protocol") != 1:
            raise unusable(
                f"semel {message['semel']} speaks another protocol than this package.",
                "Install a binary and a package of the same version.",
            )
        self._greeted = True

    def _finish(self, trouble: Exception | None) -> None:
        if trouble is not None:
            self._child.kill()
        with self._lock:
            self.over = True
            self._close("_stdin")
            waiting, self._slots = list(self._slots.values()), {}
        try:
            self._words = (self._words + self._last_words())[-_STDERR_KEPT:]
        finally:
            self._close("_stdout")
            self._close("_stderr")
        try:
            self._child.wait(_END_WAIT)
        except subprocess.TimeoutExpired:
            self._child.kill()
        words = self._words.decode(errors="replace").strip()
        for slot in waiting:
            slot.set(self._reason(trouble, words))

    def _last_words(self) -> bytes:
        poll = select.poll()
        poll.register(self._stderr, select.POLLIN)
        return os.read(self._stderr, 1 << 16) if poll.poll(0) else b""

    def _reason(self, trouble: Exception | None, words: str) -> Exception:
        # An exception each: callers in several threads must not share a traceback.
        if isinstance(trouble, SemelError):
            return type(trouble)(*trouble.args, **trouble.__dict__)
        if self._greeted or (trouble is None and (self._child.returncode or 0) < 0):  # somebody killed it
            return Lost(f"the sidecar ended{': ' + words if words else ''}")
        said = f" It said: {words}" if words else ""
        return unusable(
            f"{self._binary} sdk --stdio did not start.{said}",
            "Run it by hand to see why, or set SEMEL_BIN to another semel.",
        )
