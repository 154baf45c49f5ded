"""Read the service's problem documents, and responses that should have been problem documents."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from soundmark_sdk.client.failures import ApiProblem, RefusedField
from soundmark_sdk.http_exchange import BodyRefused, Response

# A problem document has few members; the error page of a proxy may have any size.
PROBLEM_BYTES_MAX: Final = 256 * 1024

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CODE: Final = re.compile(r"[a-z0-9_]{1,80}")


async def read_problem(response: Response, credential: str | None, now: datetime) -> ApiProblem:
    """Return the problem that an error status stands for, whatever its body is."""
    document = await _read_document(response)
    code = document.get("code")
    request_id = document.get("request_id") or response.headers.get("x-request-id")
    is_known = isinstance(code, str) and _CODE.fullmatch(code) is not None
    return ApiProblem(
        response.status,
        str(code) if is_known else "unknown",
        _hide(document.get("detail"), credential) if is_known else "The service answered without a problem document.",
        errors=tuple(_read_errors(document.get("errors"), credential)) if is_known else (),
        request_id=request_id if isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id) else None,
        retry_after_s=response.read_retry_after_s(now),
    )


async def _read_document(response: Response) -> Mapping[str, Any]:
    try:
        body = await response.read(PROBLEM_BYTES_MAX)
    except BodyRefused:
        return {}
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/problem+json":
        return {}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _read_errors(errors: Any, credential: str | None) -> list[RefusedField]:
    members = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    return [
        RefusedField(*(_hide(error.get(name), credential) for name in ("location", "pointer", "message")))
        for error in members
    ]


def _hide(value: Any, credential: str | None) -> str:
    if not isinstance(value, str):
        return ""
    # The service never repeats a credential; a proxy in between might.
    return value if credential is None else value.replace(credential, "[credential]")
