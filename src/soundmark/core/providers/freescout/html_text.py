"""Plain text as HTML, and HTML as plain text.

The standard library's parser takes minutes for 100 KiB of broken HTML, which anybody may mail to a desk. This one reads
each character a fixed number of times, whatever the text is.

Source: HTML Living Standard, section 13.2.5, for what a browser takes for a tag, a comment and an attribute.
"""

import html
import re
from typing import Final

_TAG_NAME: Final = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)", re.ASCII)
# A quote begins a value only after an equals sign. The quantifiers never give back what they took.
_ATTRIBUTES: Final = re.compile(r"""(?>[^>=]++|=[ \t\n\r\f]*+(?>"[^"]*+"|'[^']*+')?+)*+>""")
_HIDDEN: Final = {
    name: re.compile(rf"</{name}[\s/>]", re.ASCII | re.IGNORECASE)
    for name in ("script", "style", "title", "template", "noscript", "iframe", "object", "svg", "select")
}
_SPACE: Final = re.compile(r"[ \t\n\r\f]+")
_LINES: Final = re.compile(r"\r\n|\r|\n")
_SPACES: Final = re.compile(r"^ +|  +", re.MULTILINE)
_PARAGRAPHS: Final = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "pre", "blockquote"})
_BLOCKS: Final = frozenset(
    {"address", "article", "aside", "body", "dd", "div", "dl", "dt", "fieldset", "footer", "form", "header", "hr"}
    | {"html", "li", "main", "nav", "section", "tbody", "tfoot", "thead", "tr"}
)
_CELLS: Final = frozenset({"td", "th"})
_NO_BREAK_SPACE: Final = "\xa0"
_TAB: Final = " " * 4


def to_html(text: str) -> str:
    """Return HTML that shows `text`: nothing of it is markup, and lines and indentation are kept."""
    lines = _LINES.sub("\n", text).replace("\t", _TAB)
    kept = _SPACES.sub(lambda run: _NO_BREAK_SPACE * len(run[0]), lines)
    return html.escape(kept).replace("\n", "<br>").replace(_NO_BREAK_SPACE, "&nbsp;")


def to_text(document: str) -> str:
    """Return what a reader sees of an HTML document: no markup, no scripts, no pictures, lines where it has blocks."""
    written = _PlainText()
    position = 0
    while position < len(document):
        begin = document.find("<", position)
        if begin < 0:
            begin = len(document)
        written.add_text(document[position:begin])
        position = _read_markup(document, begin, written)
    return written.text()


def _read_markup(document: str, begin: int, written: "_PlainText") -> int:
    """Read the markup that begins at a `<`, and return where it ends. What is never closed goes on to the end."""
    if document.startswith("<!--", begin):
        return _after(document, "-->", begin + 2)
    tag = _TAG_NAME.match(document, begin)
    if tag is not None:
        return _read_tag(document, tag, written)
    if document[begin + 1 : begin + 2] in {"!", "?", "/"}:
        return _after(document, ">", begin)
    written.add_text(document[begin : begin + 1])
    return begin + 1


def _read_tag(document: str, tag: re.Match[str], written: "_PlainText") -> int:
    end = len(document)
    closing = _ATTRIBUTES.match(document, tag.end())
    if closing is None:
        return end
    name = tag[2].lower()
    if not tag[1] and name in _HIDDEN:
        hidden = _HIDDEN[name].search(document, closing.end())
        return end if hidden is None else hidden.start()
    written.add_tag(name, is_end=bool(tag[1]))
    return closing.end()


def _after(document: str, text: str, begin: int) -> int:
    found = document.find(text, begin)
    return len(document) if found < 0 else found + len(text)


class _PlainText:
    """The text so far, and how many line breaks and whether a space come before what is added next."""

    def __init__(self) -> None:
        self._parts: Final[list[str]] = []
        self._breaks = 0
        self._has_space = False
        self._preformatted = 0

    def add_text(self, source: str) -> None:
        """Add text in which white space is one space, unless it is preformatted."""
        if self._preformatted:
            first, *others = _LINES.split(html.unescape(source))
            self._add(first)
            for line in others:
                self._breaks += 1
                self._add(line)
            return
        text = html.unescape(_SPACE.sub(" ", source))
        if text.startswith(" "):
            self._has_space = True
        self._add(text.strip(" "))
        if text.endswith(" "):
            self._has_space = True

    def add_tag(self, name: str, *, is_end: bool) -> None:
        """Begin a new line where a browser does."""
        if name == "br":
            self._break(self._breaks + 1)
        elif name in _PARAGRAPHS:
            self._break(max(self._breaks, 2))
        elif name in _BLOCKS:
            self._break(max(self._breaks, 1))
        elif name in _CELLS:
            self._has_space = True
        if name == "li" and not is_end:
            self._add("- ")
        if name == "pre":
            self._preformatted = max(0, self._preformatted + (-1 if is_end else 1))

    def text(self) -> str:
        """Return the whole text."""
        return "".join(self._parts).replace(_NO_BREAK_SPACE, " ").rstrip()

    def _break(self, breaks: int) -> None:
        self._breaks = breaks
        self._has_space = False

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._parts:
            self._parts.append("\n" * self._breaks or " " * self._has_space)
        self._breaks = 0
        self._has_space = False
        self._parts.append(text)
