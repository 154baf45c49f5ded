"""The route that tests a system."""

from typing import Annotated, cast, get_args

from fastapi import Depends, Path

from soundmark.core.domain.platform.system_test import SystemName
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx
from soundmark.core.features.platform.systems import example, service
from soundmark.core.features.platform.systems.wire import SystemTestView, system_test_view
from soundmark.kit.http.responses.problems import NotFound, RateLimited

operations = Operations("Platform")


async def _find_system(
    system: Annotated[
        str,
        Path(max_length=160, description="`mail`, `desk`, `accounting` or `card` (else 404).", examples=["mail"]),
    ],
) -> SystemName:
    if system not in get_args(SystemName):
        raise NotFound("No system has this name: they are mail, desk, accounting and card.")
    return cast("SystemName", system)


@operations.add(
    "POST",
    "/v1/platform/systems/{system}/test",
    Operation("platform.change", tenant="none", problems=(NotFound, RateLimited)),
    example=system_test_view(example.REFUSED),
)
async def test_platform_system(
    ctx: Ctx, user: CallingUser, system: Annotated[SystemName, Depends(_find_system)]
) -> SystemTestView:
    """Use a system once with the current settings, and return whether it works.

    The mail server gets a short mail to the caller's verified address. From the others, Core only reads: folders of the
    mailbox, invoices with a reference that none has, one price. Nothing is changed, stored or retried, and a test ends
    within ten seconds. Each system has one test at a time, and ten a minute.
    """
    return system_test_view(await service.test_system(ctx, user, system))
