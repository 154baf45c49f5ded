"""Issuing and reading Codes."""

from core_app import Api


async def test_an_issued_code_can_be_resolved(api: Api) -> None:
    tenant = await api.given_tenant()
    code = await tenant.given_code()
    answer = await api.resolve(code["broadcast_token"])
    assert (answer.status, answer.json["intent"]) == (200, code["intent"])
