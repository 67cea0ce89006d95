"""Real servers that hold a ledger, each in a directory of a test's own and on a free port of loopback."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from semel import _binary

TOKEN = "semel_test_" + "t" * 40


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Served:
    """A `semel serve`. With a certificate, it speaks TLS."""

    def __init__(self, env: dict[str, str], log: Path, certificate: Path | None = None) -> None:
        self.port = free_port()
        self.address = f"{'https' if certificate else 'http'}://localhost:{self.port}"
        self._env, self._log = {**env, "SEMEL_SERVE_TOKEN": TOKEN}, log
        self._tls = ssl.create_default_context(cafile=certificate) if certificate else None

    def start(self) -> None:
        with open(self._log, "a") as log:
            self._process = subprocess.Popen(
                [_binary.find(), "serve", "--listen", f"127.0.0.1:{self.port}"], env=self._env, stdout=log, stderr=log
            )
        while True:
            try:
                urllib.request.urlopen(self.address + "/livez", context=self._tls)
                return
            except OSError:
                assert self._process.poll() is None, self._log.read_text()
                time.sleep(0.01)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """As docs/operate.md makes one for a private network."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = directory / "key.pem", directory / "cert.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext basicConstraints=critical,CA:FALSE"
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True)
    return key, certificate


@contextmanager
def redis(directory: Path) -> Iterator[str]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        pytest.skip("neither redis-server nor valkey-server is installed")
    port = free_port()
    options = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    place = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory)]

    def answers() -> bool:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(5) == b"+PONG"

    with _running([program, *place, *options], answers):
        yield f"redis://127.0.0.1:{port}"


@contextmanager
def etcd(directory: Path) -> Iterator[str]:
    program = shutil.which("etcd")
    if program is None:
        pytest.skip("etcd is not installed")
    port, place, peer = free_port(), "http://127.0.0.1:{}".format, f"http://127.0.0.1:{free_port()}"
    options = {
        "name": "one",
        "data-dir": str(directory),
        "listen-client-urls": place(port),
        "advertise-client-urls": place(port),
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"one={peer}",
        "log-level": "error",
    }

    def answers() -> bool:
        return b'"true"' in urllib.request.urlopen(place(port) + "/health").read()

    with _running([program, *(f"--{name}={value}" for name, value in options.items())], answers):
        yield f"etcd://127.0.0.1:{port}"


@contextmanager
def _running(command: list[str], answers: Any) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _is(answers):
            assert process.poll() is None, command
            time.sleep(0.01)
        yield
    finally:
        process.kill()
        process.wait()


def _is(answers: Any) -> bool:
    try:
        return bool(answers())
    except OSError:
        return False
