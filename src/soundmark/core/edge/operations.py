"""The declaration of an operation, from which routing, authorisation, OpenAPI and tests are derived."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar

from fastapi import Depends
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from soundmark.core.access.policy import POLICY, Action
from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.idempotency_keys import KeyRule, is_dry_run, judge_key
from soundmark.core.edge.refusals import refine_problem
from soundmark.core.edge.tenants import TenantPlace, make_authorisation
from soundmark.core.problems import IntentNotCanonical
from soundmark.core.steps.tenancy import require_active
from soundmark.kit.http.requests.bodies import SMALL_BODY, BodyLimits
from soundmark.kit.http.requests.lean_route import LeanRoute
from soundmark.kit.http.requests.routes import ACCESS, UNANSWERED, StrictRoute
from soundmark.kit.http.responses.problems import Problem, ValidationFailed
from soundmark.wire.private.problems import OrganizationSuspended

# A successful response as a shape or, if it is written as bytes, as its JSON; or one for each status.
Example: TypeAlias = BaseModel | bytes | Mapping[int, BaseModel]
TryUnreadable: TypeAlias = Callable[[RequestContext, TenantScope], Awaitable[Response]]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

PUBLIC: Final[dict[str, Any]] = {
    "action": None,
    "public": True,
    "credentials": [],
    "roles": [],
    "mfa": False,
    "key_scope": None,
    "platform": False,
    "note": None,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """The declaration of one operation: who may call it, where the request names the organisation, how it may fail.

    `action` is None for an operation that needs no credential; `note` is then published. `problems` are those that
    action and body do not imply. `key` says that it takes idempotency keys. `try_unreadable` answers a dry run whose
    intent cannot be read. With `has_open_query`, the operation judges its query string itself. `unanswered` are
    problems that a body or a query implies, but that this operation never answers with.
    """

    action: Action | None
    tenant: TenantPlace = "query"
    problems: tuple[type[Problem], ...] = ()
    body_limits: BodyLimits = SMALL_BODY
    key: KeyRule | None = None
    try_unreadable: TryUnreadable | None = None
    note: str | None = None
    has_open_query: bool = False
    unanswered: tuple[type[Problem], ...] = ()

    @property
    def access(self) -> dict[str, Any]:
        """The value of `x-svc-access` in OpenAPI."""
        if self.action is None:
            return {**PUBLIC, "note": self.note}
        rule = POLICY[self.action]
        return {
            "action": self.action,
            "public": False,
            "credentials": list(rule.credentials),
            "roles": sorted(rule.roles) if rule.roles is not None else [],
            "mfa": rule.mfa,
            "key_scope": rule.key_scope,
            "platform": rule.is_platform,
            "note": rule.note,
        }

    def responses(self) -> dict[int | str, dict[str, Any]]:
        """Return the declared problems by status, for OpenAPI."""
        found: dict[int | str, dict[str, Any]] = {}
        for problem in self.problems:
            found.setdefault(int(problem.kind), {"x-problems": []})["x-problems"].append(problem.code)
        return found


class OperationRoute(StrictRoute, LeanRoute):
    """The route of a declared operation."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        operation: Operation,
        example: Example | None = None,
        **options: Any,
    ) -> None:
        self.operation: Final = operation
        self.example: Final = example
        self.body_limits = operation.body_limits
        super().__init__(path, endpoint, **options)

    def judges_query_first(self) -> bool:
        return super().judges_query_first() and not self.operation.has_open_query

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        operation = self.operation
        if operation.key is None and OrganizationSuspended not in operation.problems:
            return handle

        async def judge_tenant_first(request: Request) -> Response:
            try:
                return await handle(request)
            except (RequestValidationError, IntentNotCanonical, ValidationFailed) as refusal:
                scope: TenantScope | None = getattr(request.state, "scope", None)
                if scope is None:
                    raise
                response = await _judge_refused(operation, request, scope, refusal)
                if response is None:
                    raise
                return response

        return judge_tenant_first


async def _judge_refused(
    operation: Operation, request: Request, scope: TenantScope, refusal: Exception
) -> Response | None:
    """Judge what takes precedence over the faults of a body; return the answer of a dry run that cannot be read.

    A valid request is judged in the same order, in the transaction that carries it out.

    Raises: as `judge_key`; ResourceDeletionInProgress; OrganizationSuspended.
    """
    ctx = request.app.state.context
    if operation.key is not None and not isinstance(refusal, ValidationFailed):
        await judge_key(request)
        is_unreadable = isinstance(refusal, RequestValidationError) and refine_problem(refusal) is not None
        if operation.try_unreadable is not None and is_unreadable and is_dry_run(request):
            return await operation.try_unreadable(ctx, scope)
    if OrganizationSuspended in operation.problems and not is_dry_run(request):
        await require_active(ctx, scope)
    return None


class Operations:
    """The operations of one feature, in the order of publication."""

    def __init__(self, tag: str) -> None:
        self._tag: Final = tag
        self.routes: Final[list[OperationRoute]] = []

    def add(
        self,
        method: str,
        path: str,
        operation: Operation,
        *,
        status: int = HTTPStatus.OK,
        example: Example | None = None,
        **options: Any,
    ) -> Callable[[Endpoint], Endpoint]:
        """Return the decorator that makes a function the endpoint of an operation.

        `example` is the published example; every operation that answers in JSON has one. `options` are FastAPI's:
        `response_model`, `response_class`, `responses`, `openapi_extra`.
        """

        def register(endpoint: Endpoint) -> Endpoint:
            responses = {**options.pop("responses", {}), **operation.responses()}
            unanswered = [problem.code for problem in operation.unanswered]
            extra = {ACCESS: operation.access, UNANSWERED: unanswered, **options.pop("openapi_extra", {})}
            authorisation = []
            if operation.action is not None:
                authorisation.append(Depends(make_authorisation(operation.action, operation.tenant)))
            route = OperationRoute(
                path,
                endpoint,
                operation=operation,
                example=example,
                methods=[method],
                status_code=status,
                tags=[self._tag],
                dependencies=authorisation,
                responses=responses,
                openapi_extra=extra,
                generate_unique_id_function=lambda route: route.name,
                **options,
            )
            self.routes.append(route)
            return endpoint

        return register
