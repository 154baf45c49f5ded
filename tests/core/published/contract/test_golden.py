"""The published contract equals what was reviewed: OpenAPI, JSON Schemas and error codes."""

import difflib
import functools

import pytest
from golden_files import BASE_URL as GOLDEN_BASE_URL
from golden_files import RENEW, golden_files, published_files
from support.api.core_client import Api
from support.api.core_settings import BASE_URL

GOLDEN = golden_files()
publish_once = functools.cache(published_files)  # It takes half a second.


def test_every_published_file_has_its_golden_file_and_no_other() -> None:
    assert sorted(GOLDEN) == sorted(publish_once()), RENEW


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_the_published_file_is_the_reviewed_one(name: str) -> None:
    published = publish_once().get(name, "")
    changes = difflib.unified_diff(
        GOLDEN[name].splitlines(), published.splitlines(), f"tests/golden/{name}", "published now", lineterm="", n=1
    )
    assert published == GOLDEN[name], "\n".join([f"{name} has changed; {RENEW}", *changes])


@pytest.mark.parametrize("name", sorted(name for name in GOLDEN if name != "problems.json"))
async def test_core_serves_the_reviewed_file(api: Api, name: str) -> None:
    assert BASE_URL == GOLDEN_BASE_URL
    assert (await api.get(f"/{name}")).body.decode() == GOLDEN[name]
