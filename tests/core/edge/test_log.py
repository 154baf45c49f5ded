"""Core's log, in ordinary work and during failures: nothing that somebody could misuse."""

import structlog
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN
from support.database.rival import Rival

NAME = "Organisation with a confidential name"
ISSUER = "Issuer with a confidential name"
PEER = "203.0.113.77"


async def test_no_token_name_address_or_credential_is_logged(api: Api, rival: Rival) -> None:
    with structlog.testing.capture_logs() as logged:
        organization_id = await api.make_organization(NAME)
        project_id = await api.make_project(organization_id)
        code = await api.post(
            "/v1/codes",
            json={
                "organization_id": organization_id,
                "project_id": project_id,
                "issuer": ISSUER,
                "expires_at": "2999-01-01T00:00:00Z",
                "intent": {"type": "confidential", "action": "open", "resource": {}},
            },
        )
        token, xr_id = code.json["broadcast_token"], code.json["xr_id"]
        query = {"organization_id": organization_id}
        assert (await api.other(token=None, peer=PEER).resolve(token)).status == 200
        assert (await api.get(f"/v1/codes/{xr_id}/audio", params=query)).status == 200
        # A caller that confuses two paths sends tokens to where no route is.
        assert (await api.get(f"/v1/resolved/{token}")).status == 404
        assert (await api.other(token=OPERATOR_TOKEN + "x", peer=PEER).get("/v1/codes", params=query)).status == 401
        await rival.run("UPDATE broadcasts SET payload = payload || ' '")
        assert (await api.other(token=None, peer=PEER).resolve(token)).status == 404
        assert (await api.get(f"/v1/codes/{xr_id}", params=query)).status == 404

    events = [entry["event"] for entry in logged]
    assert events.count("stored_code_does_not_verify") == 2
    assert events.count("request") >= 6
    text = repr(logged)
    for secret in (token, OPERATOR_TOKEN, NAME, ISSUER, PEER, "confidential"):
        assert secret not in text
