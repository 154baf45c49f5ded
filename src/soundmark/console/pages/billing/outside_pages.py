"""Pages of payment providers, to which a person goes with a link.

A redirect would not get there: browsers apply `form-action` of our policy to where a form leads in the end.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from soundmark.console.troubles import make_trouble
from soundmark.console.visit import Visit
from soundmark.kit.text.validation import is_secure_url

_BAD_GATEWAY: Final = 502


def show_way_out(visit: Visit, kind: str, url: str) -> Response:
    """Show the link to a provider's page, and where it leads; `kind` is "checkout" or "portal".

    An address that anybody on the way could read or replace is not shown.
    """
    # The card provider's pages have a fragment, which never leaves the browser.
    if not is_secure_url(url.partition("#")[0]):
        visit.trouble = make_trouble(_BAD_GATEWAY, "payment_address_refused", visit.language)
        return visit.page("failures/trouble.html")
    return visit.page("billing/way_out.html", kind=kind, url=url, host=urlsplit(url).netloc)
