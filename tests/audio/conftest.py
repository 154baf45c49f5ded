import io
import os
import subprocess
import sys
import wave
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import ggwave
import httpx2
import numpy as np
import pytest

from soundmark.kit.http.server.sockets import reserve_port

CREDENTIALS = ("first-credential-of-a-pair", "other-credential-of-a-pair")


@dataclass(frozen=True, slots=True)
class AudioProcess:
    """A running audio component, a client that holds its first credential, and what it logged."""

    client: httpx2.Client
    metrics_url: str
    log_path: Path

    def ask(self, frame: str, protocol: int = 4) -> httpx2.Response:
        return self.client.post("/render", json={"frame": frame, "protocol": protocol})

    def metrics(self) -> str:
        return httpx2.get(self.metrics_url, trust_env=False).text

    def log(self) -> str:
        return self.log_path.read_text()


@pytest.fixture(scope="session")
def audio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AudioProcess]:
    """The audio component as a process."""
    log_path = tmp_path_factory.mktemp("audio") / "log"
    with ExitStack() as stack:
        held = [stack.enter_context(reserve_port("127.0.0.1", 0)) for _ in range(2)]
        port, metrics_port = (sock.getsockname()[1] for sock in held)
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("serve_audio.py")), str(port), str(metrics_port)],
            env={**os.environ, "SOUNDMARK_AUDIO_CREDENTIAL": ",".join(CREDENTIALS)},
            stderr=stack.enter_context(log_path.open("w")),
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        client = stack.enter_context(
            httpx2.Client(
                base_url=f"http://127.0.0.1:{port}",
                headers={"authorization": f"Bearer {CREDENTIALS[0]}"},
                transport=httpx2.HTTPTransport(retries=8),  # The process takes a moment to start.
            )
        )
        client.get("/readyz").raise_for_status()
        yield AudioProcess(client, f"http://127.0.0.1:{metrics_port}/metrics", log_path)


@pytest.fixture
def decode() -> Iterator[Callable[[bytes], str | None]]:
    """ggwave's own decoder, directly from its binding: these tests do not use the SDK."""
    ggwave.disableLog()
    instance = ggwave.init()

    def heard(wav: bytes) -> str | None:
        with wave.open(io.BytesIO(wav)) as reader:
            samples = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
        payload = ggwave.decode(instance, (samples / 32768).astype("<f4").tobytes())
        return None if payload is None else payload.decode()

    yield heard
    ggwave.free(instance)
