"""The published OpenAPI document, compared with every response."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import httpx2
from jsonschema_rs import Draft202012Validator

PROBLEM_TYPE: Final = "application/problem+json"
LINES_TYPE: Final = "application/x-ndjson"


def make_validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """Return a validator for a JSON Schema of 2020-12, which checks formats too.

    Raises: jsonschema_rs.ValidationError if the schema is invalid or has a format that the library does not know.
    """
    return Draft202012Validator(
        schema,
        formats={"binary": lambda _: True},  # It says nothing of a text.
        validate_formats=True,
        ignore_unknown_formats=False,
        offline=True,
    )


class PublishedContract:
    """An OpenAPI document that every response of a test must match."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document: Final = document
        # Templates with fewer parameters first: `/v1/codes/batch` is not a Code's id.
        templates = sorted(document["paths"], key=lambda template: template.count("{"))
        self._templates: Final = [
            (re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))), document["paths"][template])
            for template in templates
        ]
        self._validators: Final[dict[str, Draft202012Validator]] = {}

    def check(self, response: httpx2.Response) -> None:
        """Fail unless the document allows this response of this operation."""
        operation = self._operation(response.request.method, response.request.url.path)
        if operation is None:
            return
        declared = operation["responses"].get(str(response.status_code))
        seen = f"{operation['operationId']} answered {response.status_code}: {response.text[:300]}"
        assert declared is not None, f"not documented: {seen}"
        if "content" not in declared:
            assert not response.content, f"a body is not documented: {seen}"
            return
        media_type = response.headers["content-type"].partition(";")[0]
        content = declared["content"].get(media_type)
        assert content is not None, f"{media_type} is not documented: {seen}"
        if media_type == PROBLEM_TYPE:
            assert response.json()["code"] in content["examples"], f"the code is not documented: {seen}"
        if media_type == LINES_TYPE:
            for line in response.text.splitlines():
                self.validator(self._entry_schema(operation)).validate(json.loads(line))
        elif media_type.endswith("json"):
            self.validator(content["schema"]).validate(response.json())

    def validator(self, schema: Mapping[str, Any]) -> Draft202012Validator:
        """Return a validator for a schema of the document."""
        key = repr(schema)
        if key not in self._validators:
            self._validators[key] = make_validator({**schema, "components": self.document["components"]})
        return self._validators[key]

    def _entry_schema(self, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema of a line of a download: an entry of the JSON page."""
        page = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        entry: Mapping[str, Any] = self.document["components"]["schemas"][page]["properties"]["data"]["items"]
        return entry

    def _operation(self, method: str, path: str) -> Mapping[str, Any] | None:
        for pattern, operations in self._templates:
            if pattern.fullmatch(path):
                found: Mapping[str, Any] | None = operations.get(method.lower())
                return found
        return None
