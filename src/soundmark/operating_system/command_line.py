"""The command line and the environment that the kernel shows of this process, such as to `ps`."""

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

# linux/prctl.h
_PR_SET_MM: Final = 35
_PR_SET_MM_MAP: Final = 14
_PR_SET_MM_MAP_SIZE: Final = 15
_NO_FILE: Final = 0xFFFFFFFF

# Where proc(5) has them in /proc/PID/stat, counted from 1.
_FIELDS: Final = {
    "start_code": 26,
    "end_code": 27,
    "start_stack": 28,
    "start_data": 45,
    "end_data": 46,
    "start_brk": 47,
}
_AFTER_NAME: Final = 3  # The field after the name of the program, which may contain spaces.

_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_shown: ctypes.Array[ctypes.c_char] | None = None  # The kernel reads from it as long as the process lives.


class _MemoryMap(ctypes.Structure):
    """`struct prctl_mm_map` of linux/prctl.h."""

    _fields_: ClassVar = [
        *(
            (name, ctypes.c_uint64)
            for name in (
                *("start_code", "end_code", "start_data", "end_data", "start_brk", "brk", "start_stack"),
                *("arg_start", "arg_end", "env_start", "env_end", "auxv"),
            )
        ),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    ]


def can_set_command_line() -> bool:
    """Return whether the kernel lets a process without privileges say what it shows: Linux, as most build it."""
    size = ctypes.c_uint32()
    return (
        _libc is not None
        and _libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP_SIZE, ctypes.byref(size), ctypes.c_ulong(0), ctypes.c_ulong(0)) == 0
        and size.value == ctypes.sizeof(_MemoryMap)
    )


def set_command_line(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Let the kernel show this command line and this environment of this process, as if it had been started so.

    Raises: OSError.
    """
    global _shown  # noqa: PLW0603 - see there
    assert _libc is not None, "the caller has asked can_set_command_line"
    arguments = b"".join(os.fsencode(word) + b"\0" for word in argv)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environ.items())
    shown = ctypes.create_string_buffer(arguments + variables)
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
    start = ctypes.addressof(shown)
    middle = start + len(arguments)
    places = {name: int(fields[number - _AFTER_NAME]) for name, number in _FIELDS.items()}
    _libc.sbrk.restype = ctypes.c_void_p
    memory_map = _MemoryMap(
        **places,
        arg_start=start,
        arg_end=middle,
        env_start=middle,
        env_end=middle + len(variables),
        exe_fd=_NO_FILE,
        brk=_libc.sbrk(0),
    )
    size = ctypes.c_ulong(ctypes.sizeof(memory_map))
    if _libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.byref(memory_map), size, ctypes.c_ulong(0)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    _shown = shown
