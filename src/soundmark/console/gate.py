"""Who may see a page and send a form: checks of the request itself, before anything is done."""

from typing import Final

from soundmark.console.visit import Visit
from soundmark.kit.http.requests.forwarded import is_forwarded
from soundmark.kit.text.validation import is_loopback_host, split_host_header, split_url

_SAME_SITE: Final = frozenset({"same-origin", "none"})


def is_same_origin(visit: Visit) -> bool:
    """Return whether a form was sent by a page of the console.

    Browsers send `Origin` with every form; where it is absent or hidden (`null`), `Sec-Fetch-Site` must vouch for it.
    """
    headers = visit.request.headers
    origin = headers.get("origin", "null")
    if origin == "null":
        return headers.get("sec-fetch-site", "") in _SAME_SITE
    return origin == visit.console.addresses.console or _is_own_name_of_operator(visit, origin)


def may_enter(visit: Visit) -> bool:
    """Return whether the visitor is signed in; an operator only from this machine and by one of its own names.

    Without the second check any site could reach the operator's console by a name that leads here (DNS rebinding). A
    session of the other kind is from before the identity provider was configured, or removed.
    """
    if visit.session is None:
        return False
    if visit.session.kind == "oidc":
        return visit.console.sign_in is not None
    return visit.console.operator_token is not None and is_on_this_machine(visit)


def is_on_this_machine(visit: Visit) -> bool:
    """Return whether the request comes from a loopback address, to a loopback name and our port, through no proxy."""
    request = visit.request
    peer = "" if request.client is None else request.client.host
    through_proxy = is_forwarded(request.scope["headers"]) or visit.console.proxies.is_trusted(peer)
    if not is_loopback_host(peer) or through_proxy:
        return False
    hosts = request.headers.getlist("host")
    named = split_host_header(hosts[0]) if len(hosts) == 1 else None
    if named is None:
        return False
    host, port = named
    return is_loopback_host(host) and port == split_url(visit.console.addresses.console).port


def _is_own_name_of_operator(visit: Visit, origin: str) -> bool:
    """Return whether the operator opened the page of the form by another name of this machine, such as `localhost`."""
    if visit.console.operator_token is None or not is_on_this_machine(visit):
        return False
    scheme = split_url(visit.console.addresses.console).scheme
    return origin == f"{scheme}://{visit.request.headers['host']}"
