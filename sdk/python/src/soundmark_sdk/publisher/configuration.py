"""Configure the backend by environment variables: `uvicorn --factory soundmark_sdk.publisher:from_environment`."""

import os
from collections.abc import Mapping
from typing import Final

from soundmark_sdk.publisher._async.publisher import AsyncPublisher
from soundmark_sdk.publisher.backend import Backend
from soundmark_sdk.publisher.tokens import ReportingTokens

URL: Final = "PUBLISHER_AUDIENCE_URL"
INTEGRATION_ID: Final = "PUBLISHER_INTEGRATION_ID"
HMAC_SECRET: Final = "PUBLISHER_HMAC_SECRET"  # noqa: S105 - the name of the variable
REPORTING_KEY: Final = "PUBLISHER_REPORTING_KEY"


def from_environment(environ: Mapping[str, str] | None = None) -> Backend:
    """Return the backend that four variables describe: the service's address, the integration, and two secrets.

    Raises: ValueError, which names the missing or wrong variable but never its value.
    """
    given = os.environ if environ is None else environ
    missing = [name for name in (URL, INTEGRATION_ID, HMAC_SECRET, REPORTING_KEY) if not given.get(name)]
    if missing:
        raise ValueError(f"The environment lacks {', '.join(missing)}.")
    publisher = AsyncPublisher(given[URL], given[INTEGRATION_ID], given[HMAC_SECRET])
    return Backend(publisher, ReportingTokens(given[REPORTING_KEY].encode(), given[INTEGRATION_ID]))
