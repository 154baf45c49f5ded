"""The private parts of uvicorn, Starlette and FastAPI that our server and our routes rest on.

A release that renames one of them fails here, by name, before it fails as a server that ends no connection. The tables
are complete: a class of ours that uses another part fails too.
"""

import ast
import inspect
import textwrap
from typing import Any, Final

import pytest
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from uvicorn import Config, Server
from uvicorn.lifespan.on import LifespanOn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from soundmark.kit.http.requests.lean_route import LeanRoute
from soundmark.kit.http.requests.routes import JsonRoute, StrictRoute
from soundmark.kit.http.server.connection import Connection
from soundmark.kit.http.server.response_cycle import ResponseCycle
from soundmark.kit.http.server.serve import _Lifespan, _Server
from soundmark.sandbox.hanging_up import HangingUpConnection, HangingUpCycle

# By class of ours: the methods of the library that it replaces, and what else of the library it uses on itself.
HOOKS: Final[dict[type, set[str]]] = {
    Connection: {
        "_start_asgi_task", "connection_lost", "connection_made", "data_received", "on_body", "on_header",
        "on_headers_complete", "on_message_begin", "on_message_complete", "on_response_complete",
    },
    HangingUpConnection: set(),
    ResponseCycle: {"run_asgi", "send"},
    HangingUpCycle: {"send"},
    _Server: {"capture_signals", "main_loop", "on_tick", "startup"},
    _Lifespan: {"send", "startup"},
    JsonRoute: {"get_route_handler"},
    LeanRoute: {"get_route_handler", "matches"},
    StrictRoute: {"get_route_handler"},
}  # fmt: skip
USED: Final[dict[type, set[str]]] = {
    Connection: {
        "access_log", "access_logger", "app", "app_state", "client", "cycle", "expect_100_continue", "flow", "headers",
        "logger", "loop", "parser", "pipeline", "scope", "server_state", "tasks", "transport", "url",
    },
    HangingUpConnection: set(),
    ResponseCycle: {
        "default_headers", "disconnected", "flow", "keep_alive", "message_event", "on_response", "response_complete",
        "response_started", "transport",
    },
    HangingUpCycle: {"response_complete", "response_started", "transport"},
    _Server: {"lifespan", "server_state", "should_exit"},
    _Lifespan: {
        "error_occurred", "main", "receive_queue", "should_exit", "startup_event", "startup_failed",
    },
    JsonRoute: {"body_field", "dependant", "openapi_extra"},
    LeanRoute: {"dependant"},
    StrictRoute: {"body_field", "methods", "openapi_extra"},
}  # fmt: skip
# What we use of objects that the libraries make.
OF_OTHERS: Final[dict[type, set[str]]] = {
    Config: {"http_protocol_class", "lifespan_class", "load"},
    Dependant: {
        "call", "cookie_params", "dependencies", "header_params", "name", "path_params", "query_params",
        "request_param_name",
    },
    HttpToolsProtocol: {"cycle", "pipeline"},
    ModelField: {"alias", "field_info", "name"},
    Request: {"_body", "_json"},
    RequestResponseCycle: {"keep_alive", "more_body", "response_complete", "response_started"},
    Server: {"serve", "should_exit", "started"},
}  # fmt: skip


def tree_of(cls: type) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(cls)))


def members(cls: type) -> set[str]:
    """Return the names that a class has: methods, annotations, and what any of its methods assigns to `self`."""
    names = set(dir(cls))
    for each in library_bases(cls):
        names |= set(inspect.get_annotations(each))
        for node in ast.walk(tree_of(each)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
                names.add(node.attr)
    return names


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def used_of_library(cls: type) -> set[str]:
    """Return the names of the library that a class of ours uses on `self` and does not define."""
    library: set[str] = set().union(*(members(each) for each in library_bases(cls)))
    ours = {name for each in our_classes(cls) for name in vars(each)}
    used = {node.attr for node in ast.walk(tree_of(cls)) if isinstance(node, ast.Attribute) and is_self(node.value)}
    return (used & library) - ours


def our_classes(cls: type) -> list[type]:
    return [each for each in cls.__mro__ if each.__module__.startswith("soundmark.")]


def library_bases(cls: type) -> list[type]:
    return [
        each for each in cls.__mro__[:-1] if each.__module__.partition(".")[0] in {"uvicorn", "starlette", "fastapi"}
    ]


def test_every_hook_still_exists(subtests: pytest.Subtests) -> None:
    """A method of ours that replaces nothing is never called."""
    for cls in HOOKS:
        with subtests.test(cls=cls):
            library: set[str] = set().union(*(vars(each) for each in library_bases(cls)))
            replaced = {name for name in vars(cls) if name in library and not name.startswith("__")}
            assert replaced == HOOKS[cls]


def test_every_part_that_we_use_still_exists(subtests: pytest.Subtests) -> None:
    for cls in USED:
        with subtests.test(cls=cls):
            assert used_of_library(cls) == USED[cls]


def test_every_part_of_their_objects_still_exists(subtests: pytest.Subtests) -> None:
    for cls in OF_OTHERS:
        with subtests.test(cls=cls):
            assert OF_OTHERS[cls] <= members(cls)


@pytest.mark.parametrize(
    ("theirs", "parameters"),
    [
        (RequestResponseCycle.__init__, (
            "scope", "transport", "flow", "logger", "access_logger", "access_log", "default_headers", "message_event",
            "expect_100_continue", "keep_alive", "on_response",
        )),
        (HttpToolsProtocol._start_asgi_task, ("cycle", "app")),
        (Server.on_tick, ("counter",)),
        (Server.startup, ("sockets",)),
        (LifespanOn.send, ("message",)),
        (APIRoute.get_route_handler, ()),
        (APIRoute.matches, ("scope",)),
        (ModelField.validate, ("value", "values", "loc")),
    ],
)  # fmt: skip
def test_a_hook_takes_the_same_parameters(theirs: Any, parameters: tuple[str, ...]) -> None:
    assert tuple(inspect.signature(theirs).parameters)[1:] == parameters
