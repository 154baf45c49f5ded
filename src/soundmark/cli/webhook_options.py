"""The arguments and options that several commands of `soundmark webhooks` share."""

from typing import Annotated

import typer

EndpointId = Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's id: whe_…")]
EventTypes = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="TYPE", help="A type of events to send, such as code.issued. Default: all."),
]
EndpointProject = Annotated[
    str | None,
    typer.Option(
        "--project", metavar="PROJECT", help="Send only this project's events. Default: the whole organisation's."
    ),
]
