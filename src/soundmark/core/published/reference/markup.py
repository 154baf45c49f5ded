"""Plain text of the contract as HTML. Markup in it is displayed, never interpreted."""

import json
import re
from typing import Any, Final

from markupsafe import Markup, escape

_CODE_OR_STRONG: Final = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")
# A member's name before its colon, another string, or a number, true, false or null, in text that is already escaped.
_JSON_TOKEN: Final = re.compile(
    r"(?P<name>&#34;(?:(?!&#34;)[^\\]|\\.)*?&#34;)(?=:)"
    r"|(?P<text>&#34;(?:(?!&#34;)[^\\]|\\&#34;|\\.)*?&#34;)"
    r"|(?P<value>(?<![\w&#])(?:-?\d[\d.eE+-]*|true|false|null)(?![\w;]))"
)


def prose(text: str) -> Markup:
    """Return paragraphs, with `code` and **strong** words."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]
    return Markup("").join(Markup("<p>{}</p>\n").format(_words(paragraph)) for paragraph in paragraphs if paragraph)


def json_text(value: Any) -> Markup:
    """Return a JSON value, indented, with names, strings and other values in different colours."""
    escaped = str(escape(json.dumps(value, ensure_ascii=False, indent=2)))
    return Markup(_JSON_TOKEN.sub(_colour, escaped))  # noqa: S704 - escaped one line above; only our spans are added


def _colour(match: re.Match[str]) -> str:
    return f'<span class="json-{match.lastgroup}">{match[0]}</span>'


def _words(text: str) -> Markup:
    parts: list[Markup] = []
    end = 0
    for match in _CODE_OR_STRONG.finditer(text):
        parts.append(escape(text[end : match.start()]))
        code, strong = match.groups()
        template = Markup("<code>{}</code>") if code else Markup("<strong>{}</strong>")
        parts.append(template.format(code or strong))
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])
