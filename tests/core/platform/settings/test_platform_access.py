"""Who may see and change platform settings, and that others learn nothing."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.operations import list_routes
from support.database.rival import Rival
from support.tenancy.platform_settings import PASSWORD, SETTINGS
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.access import operator
from soundmark.core.access.authorise import authorise_user
from soundmark.core.access.policy import Action
from soundmark.core.domain.tenancy.scope import ServerKey, User
from soundmark.core.problems import MfaRequired, PlatformAdminRequired, UserTokenRequired
from soundmark.kit.http.requests.routes import ACCESS
from soundmark.kit.http.responses.problems import Problem


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that makes the operator another caller."""

    def become(**changes: Any) -> None:
        monkeypatch.setattr(operator, "OPERATOR", replace(operator.OPERATOR, **changes))

    return become


REQUESTS = [
    ("PUT", f"{SETTINGS}/secrets/no_such_name", {"value": PASSWORD}),
    ("PUT", f"{SETTINGS}/configuration/no_such_name", {"value": 1, "unknown": 2}),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request_: " ".join(request_[:2]))
async def test_others_learn_nothing(api: Api, rival: Rival, another: Any, request_: tuple[str, str, Any]) -> None:
    """Not even which names exist."""
    method, path, body = request_
    tenant: Tenant = await make_tenant(api)
    stranger = await api.other(token=None).call(method, path, json=body)
    assert (stranger.status, stranger.code) == (401, "unauthenticated")
    another(is_platform_admin=False)
    owner = await tenant.api.call(method, path, json=body)
    assert (owner.status, owner.code) == (403, "platform_admin_required")
    another(is_platform_admin=True, has_mfa=False)
    weak = await api.call(method, path, json=body)
    assert (weak.status, weak.code) == (403, "mfa_required")
    assert await rival.rows("SELECT name FROM platform_secrets UNION SELECT name FROM platform_configuration") == []


KEY = ServerKey("key_1", "org_1", "prj_1", frozenset({"codes:read", "codes:write"}), b"digest")
ACTIONS: tuple[Action, ...] = ("platform.read", "platform.change", "release.read")
ADMINISTRATOR = User("u", "u@example.org", has_mfa=True, is_platform_admin=True)


@pytest.mark.parametrize(
    ("caller", "problem"),
    [
        (KEY, UserTokenRequired),
        (replace(ADMINISTRATOR, is_platform_admin=False), PlatformAdminRequired),
        (replace(ADMINISTRATOR, is_platform_admin=False, has_mfa=False), PlatformAdminRequired),
        (replace(ADMINISTRATOR, has_mfa=False), MfaRequired),
    ],
)
def test_only_an_administrator_with_a_second_factor_may(caller: Any, problem: type[Problem]) -> None:
    for action in ACTIONS:
        with pytest.raises(problem):
            authorise_user(caller, action)
        authorise_user(ADMINISTRATOR, action)


async def test_the_credential_route_alone_is_left_out_of_the_document(api: Api) -> None:
    """API v1, "Versioning" 1. Although left out of the document, it is part of the policy."""
    hidden = {
        (*sorted(route.methods), route.path): (route.openapi_extra or {})[ACCESS]["action"]
        for route in list_routes()
        if not route.include_in_schema
    }
    assert hidden == {("PUT", "/v1/platform/settings/secrets/{name}"): "platform.change"}
    document = dict((await api.published()).document)
    assert not [path for path in document["paths"] if "secrets" in path]
    assert "PutSecret" not in document["components"]["schemas"]
    shown = {path for path in document["paths"] if path.startswith(SETTINGS)}
    assert shown == {SETTINGS, f"{SETTINGS}/configuration/{{name}}"}
