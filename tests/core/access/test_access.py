"""Access: the roles, resources of other organisations, credentials, and the addresses of the operator."""

import re
from dataclasses import replace
from typing import Any

import pytest
from support.api.calls import CALLS, ROWS
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.api.world import OPERATIONS, World, send
from support.database.content import read_content
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.core.access.operator import is_loopback
from soundmark.core.access.policy import POLICY
from soundmark.kit.crypto.secret import Secret

FOREIGN = {name: row.foreign for name, row in ROWS.items() if row.foreign is not None}
# These name an organisation and no resource in it.
OF_ORGANIZATION = {
    *("create_invitation", "create_project", "get_usage", "list_api_keys", "list_audit_entries", "list_codes"),
    *("list_invitations", "list_members", "list_projects", "rename_organization", "verify_audit_log"),
    *("delete_organization", "preview_organization_deletion"),
    *("create_checkout", "export_organization", "list_checkouts", "list_subscriptions", "open_portal"),
    *("create_ticket", "list_tickets", "list_webhook_endpoints"),
}

# Operations that need no caller. The publisher's signature authorises an event (contract, section 6).
PUBLIC = {
    *("resolve", "list_keys", "list_key_history", "get_deletion_certificate", "deliver_event"),
    # The transparency log (contract, section 11).
    *("get_log", "get_log_checkpoint", "get_log_entries", "get_log_proof", "get_log_tile"),
    "get_decode_certificate",
    # Providers sign what they send, or are asked (contract, section 7).
    *("receive_card_event", "receive_local_notification", "receive_local_query"),
    *("receive_checkout_notification", "receive_checkout_query"),
    "receive_desk_delivery",
    "report_abuse",
}
# A missing signature is refused with the same problem as a missing credential.
SIGNED = {"receive_card_event", "receive_desk_delivery"}


def test_the_policy_gives_each_action_the_roles_of_the_contract() -> None:
    """`test_sweep.py` checks every operation against the policy."""
    inside = {action: rule.roles for action, rule in POLICY.items() if rule.roles is not None}
    of_contract = {
        (OPERATIONS[name].access["action"], row.roles) for name, row in ROWS.items() if row.roles is not None
    }
    assert set(inside.items()) == of_contract
    assert POLICY.keys() - inside.keys() == {
        *("billing.administer", "caller.read", "invitation.accept", "offer.list", "organization.create"),
        *("organization.list", "platform.read", "platform.change", "release.read"),
    }


def test_every_operation_names_its_action(published: dict[str, Any]) -> None:
    named = [
        operation["x-svc-access"].get("action") for path in published["paths"].values() for operation in path.values()
    ]
    assert {action for action in named if action is not None} == set(POLICY)
    assert named.count(None) == len(PUBLIC), (
        "resolution, keys, the log, certificates, signed events, providers' webhooks and reports of abuse are public"
    )


@pytest.fixture
async def published(api: Api) -> dict[str, Any]:
    """The OpenAPI document."""
    return dict((await api.published()).document)


async def test_a_resource_of_another_organisation_is_not_found(world: World) -> None:
    """Both organisations belong to the caller: the organisation named in the call decides, not the membership.

    First everything in the call belongs to the other organisation, its project included; then the project is right.
    Nothing changes outside the caller's organisation, whose audit log may contain the attempt.
    """
    own, foreign = world.tenant, await make_tenant(world.tenant.api)
    wrong = {}
    for operation_id, problem in FOREIGN.items():
        call = await CALLS[operation_id](replace(world, tenant=foreign))
        before = await read_content(world.rival, without=own.organization_id)
        mixed = call.replacing(foreign.organization_id, own.organization_id)
        seen = [await send(own.api, OPERATIONS[operation_id], mixed)]
        if problem != "project_not_found":
            right = mixed.replacing(foreign.project_id, own.project_id)
            seen.append(await send(own.api, OPERATIONS[operation_id], right))
        codes = [answer.code if answer.status == 404 else answer.body for answer in seen]
        is_right = codes[0] in {problem, "project_not_found"} and codes[-1] == problem
        if not is_right or await read_content(world.rival, without=own.organization_id) != before:
            wrong[operation_id] = codes
    assert wrong == {}


def test_every_operation_that_names_something_is_tried_with_another_organisations() -> None:
    inside = {operation_id for operation_id, operation in OPERATIONS.items() if operation.access["roles"]}
    assert inside == FOREIGN.keys() | OF_ORGANIZATION


BAD_CREDENTIALS: list[list[tuple[str, str]]] = [
    [],
    [("Authorization", "")],
    [("Authorization", "Bearer")],
    [("Authorization", "Bearer ")],
    [("Authorization", OPERATOR_TOKEN)],
    [("Authorization", f"Basic {OPERATOR_TOKEN}")],
    [("Authorization", f"Bearer\t{OPERATOR_TOKEN}")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN} ,")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN}x")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN[:-1]}")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN.upper()}")],
    [("Authorization", "Bearer xop_")],
    [("Authorization", "Bearer xop_" + "p" * 43)],
    [("Authorization", "Bearer xak_" + "o" * 43)],
    [("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")],
    [("Authorization", "Bearer xop_" + "o" * 20_000)],
    [("Authorization", f"Bearer {OPERATOR_TOKEN}"), ("Authorization", f"Bearer {OPERATOR_TOKEN}")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN}"), ("Authorization", "Bearer x")],
]


async def test_another_credential_is_refused(api: Api, subtests: pytest.Subtests) -> None:
    for headers in BAD_CREDENTIALS:
        with subtests.test(str(headers)[:60]):
            answer = await api.other(token=None).get("/v1/organizations", headers=headers)
            assert (answer.status, answer.code) == (401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert OPERATOR_TOKEN not in answer.body.decode()


@pytest.mark.parametrize("form", ["Bearer {}", "BEARER {}", "bearer   {}", "Bearer {} \t "])
async def test_a_credential_is_read_in_every_form_that_http_allows(api: Api, form: str) -> None:
    headers = {"Authorization": form.format(OPERATOR_TOKEN)}
    assert (await api.get("/v1/organizations", headers=headers)).status == 200


async def test_every_operation_but_the_public_ones_needs_a_credential(api: Api, published: dict[str, Any]) -> None:
    """The credential comes first: a stranger learns nothing about paths, parameters and bodies."""
    stranger = api.other(token=None)
    public = []
    for template, operations in published["paths"].items():
        for method, operation in operations.items():
            path = re.sub(r"{\w+}", "xr_1", template)
            answer = await stranger.call(method.upper(), path, content=b"{")
            if operation["x-svc-access"]["public"]:
                public.append(operation["operationId"])
                assert answer.status != 401 or operation["operationId"] in SIGNED
            else:
                assert (answer.status, answer.code) == (401, "unauthenticated"), operation["operationId"]
    assert set(public) == PUBLIC


@pytest.mark.parametrize("peer", ["203.0.113.9", "10.0.0.1", "::", "::ffff:10.0.0.1", "2001:db8::1", "testclient", ""])
async def test_the_operator_token_is_refused_from_elsewhere(api: Api, peer: str) -> None:
    """Not even with a header that claims to come from this machine."""
    forwarded = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1"}
    answer = await api.other(peer=peer).get("/v1/organizations", headers=forwarded)
    assert (answer.status, answer.code) == (401, "unauthenticated")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
async def test_the_operator_token_works_from_this_machine(api: Api, peer: str) -> None:
    """Forwarded headers are ignored."""
    answer = await api.other(peer=peer).get("/v1/organizations", headers={"X-Forwarded-For": "203.0.113.9"})
    assert answer.status == 200


def test_a_malformed_address_is_not_this_machine(subtests: pytest.Subtests) -> None:
    for peer in ["localhost", "127.0.0.1:80", "127.1", "0x7f.0.0.1", "", "unix:"]:
        with subtests.test(peer=peer):
            assert not is_loopback(peer)


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.9.9.9"])
async def test_the_operator_token_is_refused_through_a_configured_proxy(database_url: Secret, peer: str) -> None:
    """A proxy on this machine is a loopback peer, and the sender of the request may be anywhere."""
    elsewhere = {"X-Forwarded-For": "203.0.113.9"}
    async with running_core(core_settings(database_url, trusted_proxies="127.0.0.0/8,::1/128")) as api:
        for headers in (elsewhere, {"Forwarded": "for=203.0.113.9"}, {"X-Forwarded-For": "127.0.0.1"}, {}):
            answer = await api.other(peer=peer).get("/v1/organizations", headers=headers)
            assert (answer.status, answer.code) == (401, "unauthenticated")


async def test_the_operator_token_works_beside_a_proxy_at_another_address(database_url: Secret) -> None:
    async with running_core(core_settings(database_url, trusted_proxies="127.0.0.2/32,10.0.0.0/8")) as api:
        assert (await api.get("/v1/organizations")).status == 200
        assert (await api.other(peer="127.0.0.2").get("/v1/organizations")).status == 401
        assert (await api.other(peer="10.0.0.1").get("/v1/organizations")).status == 401


async def test_a_core_without_an_operator_token_knows_no_caller(database_url: Secret) -> None:
    async with running_core(core_settings(database_url, operator_token=None)) as api:
        assert (await api.get("/v1/organizations")).status == 401


async def test_the_operator_is_a_user_like_any_other(api: Api, rival: Rival) -> None:
    """Contract, section 2: platform administration gives no access to an organisation."""
    tenant = await make_tenant(api)
    rows = await rival.rows("SELECT subject_id, email, role FROM members")
    assert rows == [("operator", "operator@localhost", "owner")]
    await rival.run("DELETE FROM members")
    assert (await api.get("/v1/projects", params=tenant.query)).code == "organization_not_found"
    assert (await api.get("/v1/organizations")).json["data"] == []
