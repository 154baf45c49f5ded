"""Serving a witness until Ctrl-C."""

from pathlib import Path

import typer

from soundmark.cli import Refused
from soundmark.cli.intents import printable
from soundmark.cli.log_witness import WitnessFile, make_app
from soundmark.kit import log
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.signed_notes import NotANote, VerifierKey, parse_verifier_key
from soundmark.kit.http.server.serve import Listen, run
from soundmark.kit.http.server.sockets import CannotListen, reserve_port


def serve_witness(state: Path, name: str | None, log_vkeys: list[str], host: str, port: int) -> None:
    """Serve the witness of these logs.

    Raises: Refused.
    """
    log.configure(level="info", log_format=None, component="log-witness")
    keys = [_parse(text) for text in log_vkeys]
    file = WitnessFile.open(state, name, SystemEntropy())
    try:
        with reserve_port(host, port) as held:
            chosen = held.getsockname()[1]
            typer.echo(f"{file.vkey} http://{host}:{chosen}")
            run(make_app(file, keys, SystemClock()), Listen(host, chosen))
    except CannotListen as refusal:
        raise Refused(f"{refusal}; choose another port with --port") from None


def _parse(text: str) -> VerifierKey:
    try:
        return parse_verifier_key(text)
    except NotANote as error:
        raise Refused(f"{printable(text)} {error}") from None
