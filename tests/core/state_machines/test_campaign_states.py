"""A campaign is active or archived for good; Codes are issued while it is active and open, and a stop revokes them.

Source: API v1, "States and transitions", "Campaign" and "XR Code".
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, initialize, invariant, multiple, rule
from support.api.app_machine import AppMachine, run_machine
from support.api.core_client import Api
from support.tenancy.tenant import make_tenant

from soundmark.kit.text.timestamps import format_timestamp

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
HOURS = st.sampled_from([None, -1, 1, 3])


@dataclass
class Code:
    """What must be true of one Code."""

    xr_id: str
    token: str
    expires_at: datetime
    is_revoked: bool = False

    def status(self, now: datetime) -> str:
        if self.is_revoked:
            return "revoked"
        return "expired" if now >= self.expires_at else "active"


@dataclass
class Campaign:
    """What must be true of one campaign."""

    id: str
    starts_at: datetime | None
    ends_at: datetime | None
    is_archived: bool = False
    codes: list[Code] = field(default_factory=list)

    @property
    def status(self) -> str:
        return "archived" if self.is_archived else "active"

    def is_open(self, now: datetime) -> bool:
        return (self.starts_at is None or self.starts_at <= now) and (self.ends_at is None or now < self.ends_at)


def is_in_order(starts_at: datetime | None, ends_at: datetime | None) -> bool:
    return starts_at is None or ends_at is None or starts_at < ends_at


class Campaigns(AppMachine):
    """Campaigns of one project and their Codes, while time passes."""

    campaigns = Bundle("campaigns")
    codes = Bundle("codes")

    def __init__(self, loop: asyncio.AbstractEventLoop, api: Api) -> None:
        super().__init__(loop, api.clock)
        self.api = api
        self.model: list[Campaign] = []

    @initialize(target=campaigns)
    def begin(self) -> Campaign:
        self.tenant = self.wait(make_tenant(self.api))
        return self._create(None, None)

    @rule(target=campaigns, starts=HOURS, ends=st.sampled_from([None, 4]))
    def create(self, starts: int | None, ends: int | None) -> Campaign:
        return self._create(self._moment(starts), self._moment(ends))

    @rule(campaign=campaigns, starts=HOURS, ends=HOURS)
    def reschedule(self, campaign: Campaign, starts: int | None, ends: int | None) -> None:
        starts_at, ends_at = self._moment(starts), self._moment(ends)
        changes = {"starts_at": _written(starts_at), "ends_at": _written(ends_at)}
        path = f"/v1/campaigns/{campaign.id}"
        answer = self.wait(self.api.patch(path, params=self.tenant.query, json=changes))
        if campaign.is_archived:
            assert (answer.status, answer.code) == (409, "campaign_archived")
        elif not is_in_order(starts_at, ends_at):
            assert (answer.status, answer.code) == (422, "validation_failed")
        else:
            assert answer.status == 200
            campaign.starts_at, campaign.ends_at = starts_at, ends_at

    @rule(campaign=campaigns)
    def archive(self, campaign: Campaign) -> None:
        answer = self.wait(self.api.post(f"/v1/campaigns/{campaign.id}/archive", params=self.tenant.query))
        campaign.is_archived = True
        assert (answer.status, answer.json["status"]) == (200, "archived")

    @rule(campaign=campaigns)
    def stop(self, campaign: Campaign) -> None:
        active = [code for code in campaign.codes if code.status(self.now) == "active"]
        answer = self.wait(self.api.post(f"/v1/campaigns/{campaign.id}/stop", params=self.tenant.query))
        assert (answer.status, answer.json["revoked_count"]) == (200, len(active))
        campaign.is_archived = True
        for code in active:
            code.is_revoked = True

    @rule(target=codes, campaign=campaigns, hours=st.sampled_from([1, 2, 48]))
    def issue(self, campaign: Campaign, hours: int) -> Code | MultipleResults[Code]:
        expires_at = self.now + timedelta(hours=hours)
        body = self.tenant.code_body(campaign_id=campaign.id, expires_at=format_timestamp(expires_at))
        answer = self.wait(self.api.post("/v1/codes", json=body))
        if campaign.is_archived or not campaign.is_open(self.now):
            problem = "campaign_archived" if campaign.is_archived else "campaign_not_open"
            assert (answer.status, answer.code) == (409, problem)
            return multiple()
        assert answer.status == 201
        code = Code(answer.json["xr_id"], answer.json["broadcast_token"], expires_at)
        campaign.codes.append(code)
        return code

    @rule(code=codes)
    def revoke(self, code: Code) -> None:
        """An expired Code stays expired."""
        code.is_revoked = code.status(self.now) != "expired"
        assert self.wait(self.tenant.revoke(code.xr_id)).json["status"] == code.status(self.now)

    @rule(code=codes)
    def resolve(self, code: Code) -> None:
        answer = self.wait(self.api.resolve(code.token))
        problems = {"active": None, "expired": "code_expired", "revoked": "code_unavailable"}
        assert (answer.code if answer.status >= 400 else None) == problems[code.status(self.now)]

    @rule(hours=st.sampled_from([1, 2]))
    def wait_for_hours(self, hours: int) -> None:
        self.clock.advance(hours=hours)

    @invariant()
    def the_summary_of_every_campaign_counts_its_codes(self) -> None:
        for campaign in self.model:
            answer = self.wait(self.api.get(f"/v1/campaigns/{campaign.id}/summary", params=self.tenant.query))
            statuses = [code.status(self.now) for code in campaign.codes]
            expected = {status: statuses.count(status) for status in ("active", "expired", "revoked")}
            assert answer.json["campaign"]["status"] == campaign.status
            assert answer.json["counts"] == {"issued": len(statuses), **expected, "audience_enabled": 0}

    def _create(self, starts_at: datetime | None, ends_at: datetime | None) -> Campaign:
        schedule = {"starts_at": _written(starts_at), "ends_at": _written(ends_at)}
        made = self.wait(self.tenant.make_campaign(f"Campaign {len(self.model)}", **schedule))
        campaign = Campaign(made["id"], starts_at, ends_at)
        self.model.append(campaign)
        return campaign

    def _moment(self, hours: int | None) -> datetime | None:
        return None if hours is None else self.now + timedelta(hours=hours)


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)


async def test_every_walk_through_the_states_of_campaigns_is_as_specified(api: Api) -> None:
    await run_machine(lambda loop: Campaigns(loop, api), examples=20, steps=15)
