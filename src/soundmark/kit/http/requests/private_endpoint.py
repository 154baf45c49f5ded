"""One operation of a private component, declared once for the component and its callers."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Generic, Literal, TypeVar

from pydantic import BaseModel

from soundmark.kit.http.responses.problems import Problem

R = TypeVar("R", bound=BaseModel | bytes)

Method = Literal["GET", "PATCH", "POST", "PUT"]

JSON_TYPE: Final = "application/json"


@dataclass(frozen=True, slots=True)
class PrivateEndpoint(Generic[R]):
    """A route of a private component.

    `path` is a template such as `/v1/things/{thing_id}`. `response` is the closed shape of a successful response, or
    `bytes` of `media_type`; `statuses` are those of success, the usual one first. `problems` are those that a caller
    passes on, known by their code. Any other response means that the component failed.
    """

    method: Method
    path: str
    response: type[R]
    statuses: tuple[HTTPStatus, ...] = (HTTPStatus.OK,)
    problems: tuple[type[Problem], ...] = ()
    media_type: str = JSON_TYPE
