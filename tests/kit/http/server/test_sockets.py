"""The error messages for an address that cannot be listened on."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from soundmark.kit.http.server import sockets
from soundmark.kit.http.server.sockets import CannotListen, PortReserved, PortTaken, reserve_port, shared_socket


def refusal(host: str, port: int) -> CannotListen:
    """Return the message, which is the same for both ways of binding a port."""
    with pytest.raises(CannotListen) as reserved:
        reserve_port(host, port).close()
    with pytest.raises(CannotListen) as shared:
        shared_socket(host, port).close()
    assert str(reserved.value) == str(shared.value)
    assert type(reserved.value) is type(shared.value)
    return reserved.value


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        found = refusal("127.0.0.1", port)
    assert isinstance(found, PortTaken)
    assert str(found) == f"127.0.0.1:{port} is in use by another program"


def test_an_address_of_another_machine_is_reported() -> None:
    """192.0.2.0/24 is reserved for documentation: no machine has such an address."""
    found = refusal("192.0.2.1", 8080)
    assert not isinstance(found, PortTaken)
    assert str(found) == "cannot listen on 192.0.2.1:8080: this machine does not have the address 192.0.2.1"


@pytest.mark.parametrize("host", ["example.invalid", "999.1.1.1", "a" * 64 + ".example"])
def test_a_malformed_host_name_is_reported(host: str) -> None:
    assert str(refusal(host, 8080)) == (
        f"cannot listen on {host}:8080: the host name {host} does not resolve to an address"
    )


def test_any_other_system_error_is_passed_on() -> None:
    """A link-local address without its interface."""
    assert str(refusal("fe80::1", 8080)).startswith("cannot listen on [fe80::1]:8080: ")


def test_a_reserved_port_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the kernel refuses it depends on the machine and on the user."""

    class Refusing(socket.socket):
        def bind(self, _: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(sockets.socket, "socket", Refusing)
    monkeypatch.setattr(sockets, "_RESERVED_BELOW", Path("/nonexistent"))
    found = refusal("127.0.0.1", 80)
    assert isinstance(found, PortReserved)
    assert str(found) == "cannot listen on 127.0.0.1:80: ports below 1024 are reserved for root"
    assert str(refusal("127.0.0.1", 8080)) == "cannot listen on 127.0.0.1:8080: Permission denied"


def test_an_unprivileged_user_is_refused_before_anything_is_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A system may reserve fewer ports than usual, or none."""
    monkeypatch.setattr(sockets, "_RESERVED_BELOW", tmp_path / "start")
    (tmp_path / "start").write_text("500\n")
    for port in (0, 500, 8080):
        sockets.require_unreserved("127.0.0.1", port, "soundmark")
    with pytest.raises(PortReserved) as found:
        sockets.require_unreserved("::", 499, "soundmark")
    assert str(found.value) == (
        "cannot listen on [::]:499: ports below 500 are reserved for root, "
        "and the serving process runs as the user soundmark"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_kernel_refuses_a_reserved_port_in_these_words() -> None:
    """The real kernel's response to an unprivileged user; some systems reserve no port."""
    reserved_below = int(sockets._RESERVED_BELOW.read_text())
    script = (
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from soundmark.kit.http.server.sockets import PortReserved, reserve_port\n"
        "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try:\n    reserve_port('127.0.0.1', 1).close()\n"
        "except PortReserved as refusal:\n    print(refusal)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    message = f"cannot listen on 127.0.0.1:1: ports below {reserved_below} are reserved for root\n"
    assert done.stdout == (message if reserved_below > 1 else "")


def test_an_empty_host_is_refused() -> None:
    """It comes from a variable that was not set, and the kernel takes it for every address of the machine."""
    assert "the host is empty" in str(refusal("", 8080))
