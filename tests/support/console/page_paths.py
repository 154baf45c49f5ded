"""The paths of the console's pages."""

import re
from collections.abc import Mapping

from starlette.routing import Route

from soundmark.console import app


def list_paths(ids: Mapping[str, str]) -> list[str]:
    """Return the path of each page whose parameters are all among these."""
    return [
        re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], route.path)
        for route in app.PAGES
        if isinstance(route, Route) and set(re.findall(r"\{(\w+)\}", route.path)) <= ids.keys()
    ]
