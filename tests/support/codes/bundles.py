"""Requests for audio bundles, and what they are answered with."""

import io
import zipfile
from datetime import timedelta
from typing import Any

from soundmark.kit.text.timestamps import format_timestamp
from support.api.core_client import Answer
from support.tenancy.tenant import Tenant

AUDIO_BUNDLE = "/v1/codes/audio-bundle"
UNKNOWN_CODE = "xr_" + "A" * 22


async def make_codes(tenant: Tenant, count: int, *, lifetime_s: float = 86400) -> list[str]:
    """Issue Codes and return their ids, in no particular order."""
    expires_at = format_timestamp(tenant.api.clock.now() + timedelta(seconds=lifetime_s))
    body = tenant.code_body(count=count, expires_at=expires_at)
    issued = await tenant.api.post("/v1/codes/batch", json=body)
    assert issued.status == 201, issued.body
    return [code["xr_id"] for code in issued.json["data"]]


async def request_bundle(tenant: Tenant, xr_ids: Any, **changes: Any) -> Answer:
    params = {**tenant.query, "project_id": tenant.project_id}
    return await tenant.api.post(AUDIO_BUNDLE, params=params, json={"xr_ids": xr_ids, **changes})


def open_bundle(bundled: Answer) -> zipfile.ZipFile:
    assert bundled.status == 200, bundled.body
    return zipfile.ZipFile(io.BytesIO(bundled.body))


def refused(answered: Answer) -> tuple[int, str]:
    return answered.status, answered.code


def pointers(answered: Answer) -> list[tuple[str, str]]:
    assert refused(answered) == (422, "validation_failed"), answered.body
    return [(error["location"], error["pointer"]) for error in answered.json["errors"]]
