"""Venues, whose agents have not begun."""

from pathlib import Path

import pytest
from support.studio.playout_lines import TEN_MINUTES, make_source
from support.studio.playout_venue import Venue

from soundmark.studio.play.playout import Line
from soundmark.studio.play.records import CampaignState


@pytest.fixture
def venue(tmp_path: Path) -> Venue:
    """A venue that plays one Code."""
    venue = Venue(tmp_path, [Line("xr_1")])
    venue.service.add(make_source())
    return venue


@pytest.fixture
def rotating(tmp_path: Path) -> Venue:
    """A venue that plays Codes with the intent of one, each for ten minutes."""
    venue = Venue(tmp_path, [Line("xr_1")], TEN_MINUTES)
    venue.service.add(make_source())
    return venue


@pytest.fixture
def festival(tmp_path: Path) -> Venue:
    """A venue that plays a campaign's Code."""
    venue = Venue(tmp_path, [Line("cmp_1", campaign_id="cmp_1")])
    venue.service.campaigns["cmp_1"] = CampaignState(None, None, is_archived=False)
    venue.service.add(make_source(campaign_id="cmp_1"))
    return venue
