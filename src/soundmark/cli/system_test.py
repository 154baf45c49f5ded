"""`soundmark platform test`: whether a system works with the settings that Core uses."""

from typing import Annotated, Literal, TypeAlias

import typer

from soundmark.cli import Refused
from soundmark.cli.api import open_client, show_outcome
from soundmark.cli.options import AsJson, Connection

_System: TypeAlias = Literal["mail", "desk", "accounting", "card"]


def send_test(
    system: Annotated[_System, typer.Argument(help="The system to test.")],
    *,
    connection: Connection,
    as_json: AsJson = False,
) -> None:
    """Test a system with Core's current settings: send a short mail, or read something from the others.

    The test runs in Core, so this calls the API as an administrator of the platform. Exit status 1 if the system does
    not work; the error message says why.
    """
    with open_client(connection) as client:
        tested = client.platform.test_system(system)
    if tested.ok or as_json:
        show_outcome(tested, tested.reason, as_json=as_json)
    if not tested.ok:
        raise Refused(f"the test of {system} failed: {tested.reason}")
