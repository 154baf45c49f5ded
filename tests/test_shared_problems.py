"""No failure is shared: an exception keeps every frame that it passed through, and what was asked in each of them."""

import importlib
import pkgutil

import pytest
import soundmark_sdk
from support.core_client import Api
from support.tenant import Tenant, make_tenant

import soundmark

MODULES = sorted(
    module.name
    for package in (soundmark, soundmark_sdk)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    # Alembic alone can import what it runs.
    if not module.name.endswith(("__main__", ".alembic.env")) and ".migrations." not in module.name
)


@pytest.mark.parametrize("name", MODULES)
def test_no_module_holds_an_exception_to_be_raised_again_and_again(name: str) -> None:
    """One did: each refusal of a past expiry stayed in memory, with its whole request, as long as the process ran."""
    module = importlib.import_module(name)
    assert [member for member, value in vars(module).items() if isinstance(value, BaseException)] == []


async def test_a_refusal_is_the_same_each_time(api: Api) -> None:
    tenant: Tenant = await make_tenant(api)
    body = tenant.code_body(expires_at="2000-01-01T00:00:00Z")
    refused = [await api.post("/v1/codes", json=body) for _ in range(3)]
    assert [answer.json["errors"] for answer in refused] == [
        [{"location": "body", "pointer": "/expires_at", "message": "must be in the future"}]
    ] * 3
