"""Requests made to be expensive: no route of Audience decodes them."""

from support.api.hostile_requests import FORM_TYPE, HOSTILE_HEADS, RawRequest, find_costly, make_hostile_form, pad
from support.audience.client import CREDENTIAL, AudienceApi, list_private_routes

OTHER_ROUTES = [("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/v1/events"), ("GET", "/v1/nowhere")]
EVENT_BYTES_MAX = 16 * 1024


async def test_no_route_decodes_what_is_hostile_in_the_head_of_a_request(audience: AudienceApi) -> None:
    costly = {}
    for method, path in [*list_private_routes(), *OTHER_ROUTES]:
        request = RawRequest(method, path, headers=(("authorization", f"Bearer {CREDENTIAL}"),))
        hostile = {name: make(request) for name, make in HOSTILE_HEADS.items()}
        costly |= {(path, name): s for name, s in (await find_costly(audience.app, pad(request), hostile)).items()}
    assert costly == {}


async def test_an_event_that_is_a_form_is_not_decoded(audience: AudienceApi) -> None:
    request = RawRequest("POST", "/v1/events")
    hostile = {"a form": request.with_body(FORM_TYPE, make_hostile_form(EVENT_BYTES_MAX))}

    assert await find_costly(audience.app, pad(request), hostile) == {}
