"""An API key is active, revoked or expired, and only the newest secret of an active key works.

Source: API v1, "States and transitions", "Server API key".
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule
from support.api.app_machine import AppMachine, run_machine
from support.api.core_client import Api
from support.tenancy.tenant import make_tenant

from soundmark.kit.text.timestamps import parse_timestamp

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
MILLISECOND = timedelta(milliseconds=1)


@dataclass
class Key:
    """What must be true of one key."""

    id: str
    secrets: list[str]
    expires_at: datetime
    is_revoked: bool = False

    def status(self, now: datetime) -> str:
        if self.is_revoked:
            return "revoked"
        return "expired" if now >= self.expires_at else "active"


class ServerKeys(AppMachine):
    """Keys of one project, created, rotated, revoked and used in any order while time passes."""

    keys = Bundle("keys")

    def __init__(self, loop: asyncio.AbstractEventLoop, api: Api) -> None:
        super().__init__(loop, api.clock)
        self.api = api
        self.model: list[Key] = []

    @initialize()
    def begin(self) -> None:
        self.tenant = self.wait(make_tenant(self.api))

    @rule(target=keys, days=st.integers(1, 2))
    def create(self, days: int) -> Key:
        made = self.wait(self.tenant.make_key(expires_in_days=days))
        key = Key(made["id"], [made["secret"]], parse_timestamp(made["expires_at"]))
        assert key.expires_at == self.now + timedelta(days=days)
        self.model.append(key)
        return key

    @rule(key=keys)
    def revoke(self, key: Key) -> None:
        """An expired key stays expired."""
        answer = self.wait(self.api.post(f"/v1/api-keys/{key.id}/revoke", params=self.tenant.query))
        key.is_revoked = key.status(self.now) != "expired"
        assert (answer.status, answer.json["status"]) == (200, key.status(self.now))

    @rule(key=keys)
    def rotate(self, key: Key) -> None:
        answer = self.wait(self.api.post(f"/v1/api-keys/{key.id}/secret", params=self.tenant.query))
        if key.status(self.now) == "active":
            assert answer.status == 200
            key.secrets.append(answer.json["secret"])
        else:
            assert (answer.status, answer.code) == (409, "api_key_not_active")

    @rule(key=keys, is_newest=st.booleans())
    def use(self, key: Key, is_newest: bool) -> None:
        secret = key.secrets[-1 if is_newest else 0]
        answer = self.wait(self.api.other(token=secret).get("/v1/codes", params=self.tenant.query))
        works = key.status(self.now) == "active" and secret == key.secrets[-1]
        assert answer.status == (200 if works else 401)

    @rule(key=keys, is_over=st.booleans())
    def reach_the_end(self, key: Key, is_over: bool) -> None:
        self.advance_to(key.expires_at - (timedelta() if is_over else MILLISECOND))

    @rule(hours=st.sampled_from([1, 20]))
    def wait_for_hours(self, hours: int) -> None:
        self.clock.advance(hours=hours)

    @invariant()
    def the_list_shows_the_status_of_every_key(self) -> None:
        page = self.wait(self.api.get("/v1/api-keys", params={**self.tenant.query, "limit": "100"}))
        shown = {key["id"]: key["status"] for key in page.json["data"]}
        assert shown == {key.id: key.status(self.now) for key in self.model}


async def test_every_walk_through_the_states_of_server_keys_is_as_specified(api: Api) -> None:
    await run_machine(lambda loop: ServerKeys(loop, api), examples=25, steps=15)
