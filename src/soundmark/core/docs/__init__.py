"""Human documents."""

from collections.abc import Mapping
from typing import Any


def render_reference(openapi: Mapping[str, Any]) -> str:
    return str(openapi["info"])


def render_problem(code: str, title: str, status: int, kind_text: str) -> str:
    return f"{code} {title} {status} {kind_text}"
