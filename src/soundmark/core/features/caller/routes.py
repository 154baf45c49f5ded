"""The route by which a caller learns what its credential is."""

from typing import Annotated

from fastapi import APIRouter, Depends

from soundmark.core.domain.scope import Caller
from soundmark.core.edge import AnyCaller, needs
from soundmark.core.features.caller.wire import CallerView, caller_view
from soundmark.kit.http import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["Caller"])


@router.get("/v1/caller", openapi_extra=needs("caller.read"))
async def get_caller(caller: Annotated[Caller, Depends(AnyCaller("caller.read"))]) -> CallerView:
    """Read who the credential in use stands for, and the organisation and project that a server key belongs to."""
    return caller_view(caller)
