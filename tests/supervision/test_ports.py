"""The ports that `soundmark up` takes: the chosen ones, the usual one of the console if it is free, and free ones."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.fake_clock import FakeClock

from soundmark.kit.http.server.sockets import PortTaken, reserve_port
from soundmark.operating_system.os_user import OsUser
from soundmark.supervision import data_dir, ports
from soundmark.supervision.plan import LOOPBACK, Options

RESERVED_BELOW = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
SOMEBODY = OsUser("somebody", 12345, 23456)


def options(port: int, console_port: int | None = None) -> Options:
    return Options(Path("data"), LOOPBACK, port, 1, console_port=console_port)


def console_port(chosen: Options, clock: FakeClock, *, before: int | None = None) -> int:
    with ports.hold_ports(chosen, LOOPBACK, clock, after_crash=False, console_port_before=before) as held:
        return held.serving["console"]


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port in place of 8083, which another program of this machine may have."""
    port = find_free_port()
    monkeypatch.setattr(ports, "CONSOLE_PORT", port)
    return port


@contextlib.contextmanager
def listening_elsewhere(port: int = 0) -> Iterator[int]:
    """Listen as another program, and yield the port."""
    with socket.socket() as other:
        other.bind((LOOPBACK, port))
        other.listen()
        yield other.getsockname()[1]


def find_free_port() -> int:
    with reserve_port(LOOPBACK, 0) as held:
        return int(held.getsockname()[1])


def is_free(port: int) -> bool:
    with contextlib.suppress(PortTaken), reserve_port(LOOPBACK, port):
        return True
    return False


def test_the_console_has_its_usual_port_if_it_is_free(usual: int, clock: FakeClock) -> None:
    assert console_port(options(find_free_port()), clock) == usual


def test_the_next_free_port_replaces_the_usual_one_if_it_is_taken(usual: int, clock: FakeClock) -> None:
    tries = range(usual, usual + ports.CONSOLE_PORT_TRIES)
    with listening_elsewhere(usual):
        free = [port for port in tries if is_free(port)]
        assert usual not in free
        assert console_port(options(find_free_port()), clock) == free[0]


def test_any_free_port_replaces_the_usual_ones_if_all_are_taken(
    usual: int, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "CONSOLE_PORT_TRIES", 1)
    with listening_elsewhere(usual):
        assert console_port(options(find_free_port()), clock) not in {usual, 0}


def test_the_console_keeps_the_port_that_it_had_before(usual: int, clock: FakeClock) -> None:
    before = find_free_port()
    assert console_port(options(find_free_port()), clock, before=before) == before
    assert console_port(options(0), clock, before=before) == before
    assert console_port(options(0, console_port=usual), clock, before=before) == usual, "it was chosen"
    assert console_port(options(before), clock, before=before) == usual, "Core was given it"
    with listening_elsewhere(before):
        assert console_port(options(find_free_port()), clock, before=before) == usual


def test_a_data_dir_remembers_the_port(tmp_path: Path) -> None:
    assert data_dir.find_console_port(tmp_path) is None
    data_dir.keep_console_port(tmp_path, 8085)
    assert data_dir.find_console_port(tmp_path) == 8085
    for broken in ("", "0", "65536", "8083.5", "\udcff"):
        (tmp_path / "console.port").write_bytes(broken.encode("utf-8", "surrogateescape"))
        assert data_dir.find_console_port(tmp_path) is None


def test_of_two_at_the_same_moment_the_second_console_has_another_port(usual: int, clock: FakeClock) -> None:
    """The first has bound the port and does not listen yet, so nothing but its claim keeps the second from it."""
    one, other = options(find_free_port()), options(find_free_port())
    with (
        ports.hold_ports(one, LOOPBACK, clock, after_crash=False) as first,
        ports.hold_ports(other, LOOPBACK, clock, after_crash=False) as second,
    ):
        assert first.serving["console"] == usual
        taken = [{*held.serving.values(), *held.metrics.values(), held.postgres} for held in (first, second)]
        assert taken[0].isdisjoint(taken[1])
    assert console_port(other, clock) == usual, "the claim ends with the first"


def test_a_chosen_port_that_another_one_has_just_bound_is_refused(clock: FakeClock) -> None:
    chosen = options(find_free_port())
    with (
        ports.hold_ports(chosen, LOOPBACK, clock, after_crash=False),
        pytest.raises(PortTaken, match=f"127.0.0.1:{chosen.port} is in use by another program"),
        ports.hold_ports(chosen, LOOPBACK, clock, after_crash=False),
    ):
        pytest.fail("the port is not free")


def test_a_free_port_that_somebody_takes_meanwhile_is_replaced_by_the_next(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = ports.reserve_port
    asked = []

    def taken_at_first(host: str, port: int) -> socket.socket:
        asked.append(port)
        if len(asked) == 1:
            raise PortTaken("taken meanwhile")
        return reserve(host, port)

    monkeypatch.setattr(ports, "reserve_port", taken_at_first)
    with ports.hold_ports(options(0), LOOPBACK, clock, after_crash=False) as held:
        assert held.serving["core"] > 0
    assert set(asked) == {0}


def test_core_may_have_the_usual_port_of_the_console(usual: int, clock: FakeClock) -> None:
    with ports.hold_ports(options(usual), LOOPBACK, clock, after_crash=False) as held:
        assert held.serving["core"] == usual
        assert held.serving["console"] != usual


def test_the_console_has_any_free_port_if_core_has(usual: int, clock: FakeClock) -> None:
    """Such an `up` shares its machine with others, which may rely on the usual port."""
    assert console_port(options(0), clock) != usual


def test_a_chosen_port_is_taken(usual: int, clock: FakeClock) -> None:
    chosen = find_free_port()
    assert console_port(options(0, console_port=chosen), clock) == chosen
    assert console_port(options(usual, console_port=0), clock) != usual


@pytest.mark.usefixtures("usual")
def test_a_chosen_port_that_another_program_has_is_refused(clock: FakeClock) -> None:
    with listening_elsewhere() as port, pytest.raises(ports.ConsolePortRefused) as refusal:
        console_port(options(0, console_port=port), clock)
    assert str(refusal.value) == (
        f"127.0.0.1:{port} is in use by another program; choose another port with --console-port"
    )


@pytest.mark.usefixtures("usual")
def test_a_taken_port_of_core_does_not_name_the_consoles_option(clock: FakeClock) -> None:
    with listening_elsewhere() as port, pytest.raises(PortTaken):
        console_port(options(port), clock)


def test_both_cannot_have_one_port(clock: FakeClock) -> None:
    port = find_free_port()
    with pytest.raises(ports.ConsolePortRefused) as refusal:
        console_port(options(port, console_port=port), clock)
    assert str(refusal.value) == f"port {port} is that of the public API; choose another port with --console-port"


@pytest.mark.skipif(RESERVED_BELOW <= 1, reason="this machine reserves no port for root")
def test_a_port_for_root_is_refused_with_the_option_that_chooses_it() -> None:
    with pytest.raises(ports.ConsolePortRefused, match="choose another port with --console-port"):
        ports.require_unreserved_ports(options(8080, console_port=1), LOOPBACK, SOMEBODY)
    ports.require_unreserved_ports(options(8080, console_port=None), LOOPBACK, SOMEBODY)


def test_all_ports_differ(clock: FakeClock) -> None:
    with ports.hold_ports(options(0), LOOPBACK, clock, after_crash=False) as held:
        every = [*held.serving.values(), *held.metrics.values(), held.postgres]
        assert len(set(every)) == len(every) == 9
