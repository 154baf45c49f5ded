"""The organisation that a call is made in, the call itself, and sending it."""

import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

import httpx2

from support.api.core_client import Answer, Api
from support.api.operations import Operation, list_operations
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

OPERATIONS: Final = {operation.id: operation for operation in list_operations()}


@dataclass(frozen=True)
class World:
    """An organisation that the person "owner" owns, and who makes the next call in it."""

    people: People
    rival: Rival
    tenant: Tenant
    sandbox: RunningSandbox
    caller_id: str = "owner"
    caller_role: str | None = "owner"

    async def make_member(self, subject_id: str, role: str) -> str:
        """Give somebody this role, in place of any that they have."""
        await self.rival.run(
            "DELETE FROM members WHERE organization_id = %s AND subject_id = %s",
            self.tenant.organization_id,
            subject_id,
        )
        await self.tenant.make_member(self.rival, subject_id, role)
        return subject_id


@dataclass(frozen=True)
class Call:
    """A request that succeeds for a caller with the right to make it; `path` holds the values of path parameters."""

    path: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def with_query(self, **params: str) -> "Call":
        return replace(self, params={**self.params, **params})

    def with_headers(self, headers: Mapping[str, str]) -> "Call":
        return replace(self, headers={**self.headers, **headers})

    def replacing(self, old: str, new: str) -> "Call":
        """Return the call with `new` wherever a parameter, header or member of the body is `old`."""

        def swap(part: Any) -> Any:
            return {name: new if value == old else value for name, value in part.items()} if part else part

        return Call(swap(self.path), swap(self.params), swap(self.json), swap(self.headers))


Prepare = Callable[[World], Awaitable[Call]]
_peers = (f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" for number in itertools.count(256))


async def send(api: Api, operation: Operation, call: Call, *, query: str = "", content: bytes | None = None) -> Answer:
    """Make the call as `api`; `query` is appended to the query string as it stands, `content` replaces the body."""
    if operation.id == "report_abuse":
        api = replace(api, peer=next(_peers))  # Each address may send few.
    values = {name: quote(value, safe="") for name, value in call.path.items()}
    url = httpx2.URL(operation.path.format(**values), params=call.params)
    if query:
        url = url.copy_with(query=(url.query + query.encode()).removeprefix(b"&"))
    body: dict[str, Any] = {} if call.json is None else {"json": call.json}
    if content is not None:
        body = {"content": content}
    return await api.call(operation.method, str(url), headers=call.headers, **body)


def plain(**call: Any) -> Prepare:
    """Prepare a call that needs nothing to exist."""

    async def prepare(_: World) -> Call:
        return Call(**call)

    return prepare


async def count_rows(world: World, table: str) -> int:
    """Count the rows of a table, from which each call makes a name that is not taken yet."""
    ((count,),) = await world.rival.rows(f"SELECT count(*) FROM {table}")
    return int(count)
