"""Serving a witness until Ctrl-C."""

from contextlib import ExitStack
from pathlib import Path

import typer

from soundmark.cli import Refused
from soundmark.cli.log_source import read_vkey
from soundmark.cli.log_witness import WitnessFile, make_app
from soundmark.kit import log
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.server.serve import Listen, run
from soundmark.kit.http.server.sockets import CannotListen, reserve_port
from soundmark.operating_system.files import InUse, NotTrusted, kept_alone


def serve_witness(state: Path, name: str | None, log_vkeys: list[str], host: str, port: int) -> None:
    """Serve the witness of these logs.

    Raises: Refused. typer.BadParameter for a malformed key.
    """
    keys = [read_vkey(text) for text in log_vkeys]
    with ExitStack() as stack:
        try:
            # Two processes would not know of each other's cosignatures, and could cosign two trees of one log.
            stack.enter_context(kept_alone(state))
        except InUse:
            raise Refused(f"another `soundmark log witness` uses {state}") from None
        except NotTrusted as untrusted:
            raise Refused(str(untrusted)) from None
        except OSError as error:
            raise Refused(f"{state} cannot be used: {error.strerror}") from None
        file = WitnessFile.open(state, name, SystemEntropy())
        log.configure(level="info", log_format=None, component="log-witness")
        try:
            chosen = stack.enter_context(reserve_port(host, port)).getsockname()[1]
            typer.echo(f"{file.vkey} http://{host}:{chosen}")
            run(make_app(file, keys, SystemClock()), Listen(host, chosen))
        except CannotListen as refusal:
            raise Refused(f"{refusal}; choose another port with --port") from None
