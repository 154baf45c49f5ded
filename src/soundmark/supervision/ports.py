"""The ports of everything that `soundmark up` runs, reserved for as long as it runs."""

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from soundmark.kit.clock import Clock
from soundmark.kit.http.server.sockets import CannotListen, PortTaken, claim_port, require_unreserved, reserve_port
from soundmark.operating_system.os_user import OsUser
from soundmark.supervision.plan import LOOPBACK, Options, Ports, audience_units

CONSOLE_PORT: Final = 8083
CONSOLE_PORT_TRIES: Final = 10  # 8083 to 8092.

# After a crash, children of the last run may hold a port until they have finished their requests.
_WAIT_S: Final = 15
_POLL_S: Final = 0.05
_FREE_PORT_TRIES: Final = 5


class ConsolePortRefused(CannotListen):
    """The console cannot have the port that the caller chose; the message is one line for the user."""


@contextlib.contextmanager
def hold_ports(
    options: Options, console_host: str, clock: Clock, *, after_crash: bool, console_port_before: int | None = None
) -> Iterator[Ports]:
    """Reserve all ports, with our own sockets that are bound and never listen, and claim them.

    The console keeps the port that it had before, or gets the first free one from 8083 on.

    So nobody else gets a port while the process that uses it is being started or restarted, not even an `up` that
    starts at the same moment.

    Raises: CannotListen.
    """
    deadline_s = clock.monotonic_s() + (_WAIT_S if after_crash else 0)
    with contextlib.ExitStack() as stack:

        def hold(host: str, port: int = 0) -> int:
            return _hold_port(stack, host, port)

        def hold_chosen(host: str, port: int) -> int:
            while True:
                try:
                    return hold(host, port)
                except PortTaken:
                    if clock.monotonic_s() >= deadline_s:
                        raise
                    time.sleep(_POLL_S)

        def hold_console() -> int:
            # A port that we hold ourselves does not count as taken, so Core's is excluded here.
            if options.console_port is not None:
                with _naming_the_option():
                    if options.console_port == options.port != 0:
                        raise PortTaken(f"port {options.port} is that of the public API")
                    return hold_chosen(console_host, options.console_port)
            for port in _list_console_ports(options, console_port_before):
                with contextlib.suppress(PortTaken):
                    return (hold_chosen if port == console_port_before else hold)(console_host, port)
            return hold(console_host)

        serving = {
            "core": hold_chosen(options.host, options.port),
            **{unit: hold(LOOPBACK) for unit in audience_units(options.cells_count)},
            "audio": hold(LOOPBACK),
            "console": hold_console(),
        }
        metrics = {unit: hold(LOOPBACK) for unit in serving}
        yield Ports(serving, metrics, hold(LOOPBACK), None if options.sandbox is None else hold(LOOPBACK))


def _list_console_ports(options: Options, before: int | None) -> list[int]:
    """Return the ports to try: the one that the console had, and the usual ones unless Core takes any port too."""
    usual = range(CONSOLE_PORT, CONSOLE_PORT + CONSOLE_PORT_TRIES) if options.port != 0 else ()
    return [port for port in (before, *usual) if port is not None and port != options.port]


def _hold_port(stack: contextlib.ExitStack, host: str, port: int) -> int:
    """Reserve and claim a port until the end of `stack`, and return it; 0 takes a free one.

    Raises: CannotListen.
    """
    # Between finding a free port and reserving it, another program may get it.
    for tries_left in reversed(range(_FREE_PORT_TRIES if port == 0 else 1)):
        try:
            with contextlib.ExitStack() as taking:
                held = taking.enter_context(reserve_port(host, port))
                taking.enter_context(claim_port(held))
                stack.enter_context(taking.pop_all())
                return int(held.getsockname()[1])
        except PortTaken:
            if tries_left == 0:
                raise
    raise AssertionError("the last try returns or raises")


def require_unreserved_ports(options: Options, console_host: str, user: OsUser) -> None:
    """Refuse chosen ports on which `user`, who has no privileges, cannot listen.

    Raises: CannotListen.
    """
    require_unreserved(options.host, options.port, user.name)
    with _naming_the_option():
        require_unreserved(console_host, options.console_port or 0, user.name)


@contextlib.contextmanager
def _naming_the_option() -> Iterator[None]:
    try:
        yield
    except CannotListen as refusal:
        raise ConsolePortRefused(f"{refusal}; choose another port with --console-port") from None
