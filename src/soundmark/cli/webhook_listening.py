"""`soundmark webhooks listen`: forward an organisation's events to a program under development on this machine."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer
from soundmark_sdk.client import ApiProblem, Client, ClientFailure
from soundmark_sdk.client.records import WebhookEndpointWithSecret

from soundmark.cli import Refused
from soundmark.cli.api import explain_failure, open_client
from soundmark.cli.intents import printable
from soundmark.cli.options import Connection, Organization
from soundmark.cli.secret_output import SecretOutput, secret_sink
from soundmark.cli.service import find_service
from soundmark.cli.webhook_forwarding import HOST, Forwarding, forwarding
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.text.ids import mint_secret
from soundmark.kit.text.validation import check_url, is_loopback_host

EventTypes = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="TYPE", help="A type of events to send, such as code.issued. Default: all."),
]
EndpointProject = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="PROJECT",
        help="Send only this project's events. Default: events of the whole organisation.",
    ),
]

_DESCRIPTION: Final = "soundmark webhooks listen"
_HINT: Final = (
    "a service that `up` runs without sign-in takes this address, others with SOUNDMARK_WEBHOOK_ALLOW_LOOPBACK=true"
)
_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _read_target(text: str) -> str:
    try:
        return check_url(text, "http")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def listen(
    *,
    forward_to: Annotated[
        str, typer.Option(parser=_read_target, metavar="URL", help="The address of your program, http or https.")
    ],
    event_types: EventTypes = None,
    project: EndpointProject = None,
    output: SecretOutput,
    organization: Organization = None,
    connection: Connection,
) -> None:
    """Forward events to a program under development, from a service on this machine, until Ctrl-C.

    The command creates a temporary endpoint, prints its secret once and then a line for each message, and removes the
    endpoint when it ends. It forwards messages unchanged with their headers, and passes your program's response back.
    If your program does not answer, the service gets 502 and retries.
    """
    address = find_service(connection).base_url
    if not is_loopback_host(urlsplit(address).hostname or ""):
        raise Refused(f"{printable(address)} is not on this machine, so its messages could not reach this command")
    path = f"/{mint_secret(SystemEntropy(), '')}"  # No other program on this machine can guess it.
    with (
        _ending_by_signal() as is_ending,
        secret_sink(output) as keep,
        forwarding(forward_to, path) as running,
        open_client(connection, organization) as client,
        _endpoint(client, running, event_types, project) as made,
    ):
        keep(made.secret)
        file = output.secret_file
        typer.echo(printable(f"secret, in {file}") if file else f"secret, shown only once: {made.secret}")
        typer.echo(f"{made.id} forwards to {printable(forward_to)}; Ctrl-C ends it")
        running.start(made.secret)
        is_ending.wait()


@contextlib.contextmanager
def _ending_by_signal() -> Iterator[threading.Event]:
    """Yield what a signal sets. It interrupts nothing, so no endpoint is made without being removed."""
    is_ending = threading.Event()

    def end(*_: Any) -> None:
        is_ending.set()

    before = {number: signal.signal(number, end) for number in _ENDINGS}
    try:
        yield is_ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _endpoint(
    client: Client, running: Forwarding, event_types: list[str] | None, project: str | None
) -> Iterator[WebhookEndpointWithSecret]:
    """Make an endpoint with the address of this command, and remove it when the block ends.

    It is found by that address, so it is removed as well if the answer to its creation was lost.
    """
    url = f"http://{HOST}:{running.port}{running.path}"
    try:
        made = client.webhooks.create(url, event_types=event_types, description=_DESCRIPTION, project_id=project)
    except ApiProblem as problem:
        hint = f"; {_HINT}" if problem.code == "validation_failed" else ""
        raise Refused(explain_failure(problem) + hint) from None
    except ClientFailure:
        with contextlib.suppress(ClientFailure):
            _remove(client, url)
        raise
    try:
        yield made
    finally:
        try:
            _remove(client, url)
        except ClientFailure as failure:
            typer.echo(f"soundmark: {made.id} was not removed: {explain_failure(failure)}", err=True)


def _remove(client: Client, url: str) -> None:
    for endpoint in client.webhooks.list():
        if endpoint.url == url:
            client.webhooks.delete(endpoint.id)
