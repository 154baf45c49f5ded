"""Configure the backend by environment variables: `uvicorn --factory soundmark_sdk.publisher:from_environment`."""

import os
from collections.abc import Mapping
from typing import Final

from soundmark_sdk.publisher._async.publisher import AsyncPublisher
from soundmark_sdk.publisher.backend import Backend
from soundmark_sdk.publisher.tokens import ReportingTokens
from soundmark_sdk.publisher.web_pages import WebPages

URL: Final = "PUBLISHER_AUDIENCE_URL"
INTEGRATION_ID: Final = "PUBLISHER_INTEGRATION_ID"
HMAC_SECRET: Final = "PUBLISHER_HMAC_SECRET"  # noqa: S105 - the name of the variable
REPORTING_KEY: Final = "PUBLISHER_REPORTING_KEY"
WEB_ORIGINS: Final = "PUBLISHER_WEB_ORIGINS"


def from_environment(environ: Mapping[str, str] | None = None) -> Backend | WebPages:
    """Return the backend that the variables describe: the service's address, the integration, and two secrets.

    The optional `PUBLISHER_WEB_ORIGINS` holds the origins, separated by spaces, of pages that may report too.

    Raises: ValueError, which names the missing or wrong variable but never its value.
    """
    given = os.environ if environ is None else environ
    missing = [name for name in (URL, INTEGRATION_ID, HMAC_SECRET, REPORTING_KEY) if not given.get(name)]
    if missing:
        raise ValueError(f"The environment lacks {', '.join(missing)}.")
    publisher = AsyncPublisher(given[URL], given[INTEGRATION_ID], given[HMAC_SECRET])
    tokens = ReportingTokens(given[REPORTING_KEY].encode(), given[INTEGRATION_ID])
    backend = Backend(publisher, tokens)
    origins = given.get(WEB_ORIGINS, "").split()
    if not origins:
        return backend
    try:
        return WebPages(backend, tokens, origins)
    except ValueError as error:
        raise ValueError(f"{WEB_ORIGINS}: {error}") from None
