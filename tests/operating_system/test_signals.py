"""Orderly ends on signals."""

import subprocess
import sys
from typing import Final

# A command that ends at its first signal, and gets another one when its event loop is closed already.
COMMAND: Final = """
import asyncio, os, signal
from soundmark.operating_system.signals import until_signalled

async def run():
    with until_signalled():
        os.kill(os.getpid(), signal.{first})
        await asyncio.sleep(60)

asyncio.run(run())
os.kill(os.getpid(), signal.{second})
print("ended in order")
"""


def test_a_second_signal_does_not_disturb_the_end() -> None:
    """Somebody presses Ctrl-C twice; `timeout` signals a command and then its group."""
    for first, second in (("SIGINT", "SIGINT"), ("SIGINT", "SIGTERM"), ("SIGTERM", "SIGHUP")):
        done = subprocess.run(
            [sys.executable, "-c", COMMAND.format(first=first, second=second)],
            check=False,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "ended in order\n", "")
