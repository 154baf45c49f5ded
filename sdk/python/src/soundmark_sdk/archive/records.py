"""Read the records of an archive one by one, a line at a time, however large the file is."""

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from soundmark_sdk.archive.failures import ArchiveRejected
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.strict_json import JsonValue, parse_at

# A Code holds its intent twice (16 KiB each at most, six times that with escapes) and little else.
LINE_BYTES_MAX: Final = 1024 * 1024

_SPACE: Final = re.compile(r"[ \t\r\n]*")


class ArchiveReader:
    """A reader of the first `size` bytes of an archive, in their order. `take` gets every line that is read."""

    def __init__(self, file: BinaryIO, size: int, take: Callable[[bytes], None]) -> None:
        file.seek(0)
        self._file: Final = file
        self._left = size
        self._take: Final = take
        self._line = ""
        self._at = 0
        # The member or record that is being read, for rejections.
        self.location = "archive"

    def iterate_members(self) -> Iterator[str]:
        """Yield the name of each member; the caller reads its value before it asks for the next."""
        self._expect("{")
        while True:
            name = self.read_value()
            self._expect(":")
            if not isinstance(name, str):
                raise self._make_malformed()
            yield name
            if self._peek() != ",":
                break
            self._expect(",")
        if self._peek():
            raise self._make_malformed()

    def iterate_records(self, name: str) -> Iterator[JsonValue]:
        """Yield each record of a list."""
        self.location = name
        if self._peek() != "[":
            raise ArchiveRejected("wrong_shape", name)
        self._expect("[")
        index = 0
        self.location = f"{name}[0]"
        has_next = self._peek() != "]"
        while has_next:
            yield self.read_value()
            has_new_line = self._skip_space()
            has_next = self._peek() == ","
            if has_next:
                self._expect(",")
                index += 1
                self.location = f"{name}[{index}]"
                if not self._skip_space() and not has_new_line:
                    raise self._make_malformed()  # Two records on one line.
        self._expect("]")
        self.location = name

    def read_value(self) -> JsonValue:
        """Return the JSON value that comes next, which must lie within one line."""
        self._skip_space()
        try:
            value, self._at = parse_at(self._line, self._at)
        except Unverifiable:
            raise self._make_malformed() from None
        return value

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._make_malformed()
        self._at += 1

    def _peek(self) -> str:
        """Return the next character that is no space, or nothing at the end."""
        self._skip_space()
        return self._line[self._at : self._at + 1]

    def _skip_space(self) -> bool:
        """Go on to the next character that is no space, and return whether it is on another line."""
        is_on_another_line = False
        while True:
            space = _SPACE.match(self._line, self._at)
            assert space is not None, "the pattern matches everywhere"
            self._at = space.end()
            if self._at < len(self._line) or not self._read_line():
                return is_on_another_line
            is_on_another_line = True

    def _read_line(self) -> bool:
        """Read the next line; return whether there is one."""
        line = self._file.readline(min(self._left, LINE_BYTES_MAX + 1))
        if not line:
            return False
        if len(line) > LINE_BYTES_MAX:
            raise self._make_malformed()
        self._left -= len(line)
        self._take(line)
        try:
            self._line, self._at = line.decode("utf-8"), 0
        except UnicodeDecodeError:
            raise self._make_malformed() from None
        return True

    def _make_malformed(self) -> ArchiveRejected:
        return ArchiveRejected("malformed", self.location)
