"""No exception is shared: it would keep every frame it passed through, and the request in each of them."""

import importlib
import pkgutil

import soundmark_sdk
from support.api.core_client import Api
from support.tenancy.tenant import Tenant

import soundmark

MODULES = sorted(
    module.name
    for package in (soundmark, soundmark_sdk)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    # Only Alembic can import its migrations.
    if not module.name.endswith(("__main__", ".alembic.env")) and ".migrations." not in module.name
)


def test_no_module_raises_one_exception_object_repeatedly() -> None:
    """One did: each refusal of a past expiry stayed in memory with its whole request until the process ended."""
    held = [
        f"{name}.{member}"
        for name in MODULES
        for member, value in vars(importlib.import_module(name)).items()
        if isinstance(value, BaseException)
    ]
    assert len(MODULES) > 300
    assert held == []


async def test_a_refusal_reads_the_same_each_time(api: Api, tenant: Tenant) -> None:
    body = tenant.code_body(expires_at="2000-01-01T00:00:00Z")
    refused = [await api.post("/v1/codes", json=body) for _ in range(3)]
    assert [answer.json["errors"] for answer in refused] == [
        [{"location": "body", "pointer": "/expires_at", "message": "must be in the future"}]
    ] * 3
