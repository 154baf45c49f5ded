"""Every route of the public API that the framework serves, those left out of the published document included."""

from fastapi.routing import APIRoute

from soundmark.core.app import bare_app


def declared_routes() -> list[APIRoute]:
    """Each route with what it declares; the framework keeps them below the router that they came with."""
    routers = [getattr(included, "original_router", None) for included in bare_app().routes]
    return [route for router in routers if router is not None for route in router.routes if isinstance(route, APIRoute)]
