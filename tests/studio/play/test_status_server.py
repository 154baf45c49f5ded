"""The agent's port for health and metrics."""

import socket
import struct
import threading

import pytest
from support.processes.up_process import until

from soundmark.studio.play.journal import Journal
from soundmark.studio.play.status_server import serving_status


def is_answering() -> bool:
    return any("process_request_thread" in each.name for each in threading.enumerate())


def test_a_client_that_resets_its_connection_is_no_news(capfd: pytest.CaptureFixture[str]) -> None:
    """Load balancers probe like that, every few seconds."""
    with serving_status(0, "127.0.0.1", Journal(print)) as port:
        with socket.create_connection(("127.0.0.1", port)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            probe.send(b"GET /metrics")
            until(is_answering, 10)
        until(lambda: not is_answering(), 10)
    assert capfd.readouterr() == ("", "")
