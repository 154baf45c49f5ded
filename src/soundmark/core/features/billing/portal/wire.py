"""The response shape of the portal."""

from typing import Annotated

from pydantic import Field

from soundmark.wire.shape import Wire


class PortalView(Wire):
    """A page of the card provider."""

    portal_url: Annotated[
        str, Field(description="The portal page. It works only for a short time; do not store its address.")
    ]
