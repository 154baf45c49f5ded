"""A stand-in for ffmpeg: it copies instead of encoding, low-passes where it is told to, and fails on command."""

import sys
from pathlib import Path

_PROGRAM = """#!{python}
import pathlib, shutil, sys
import numpy, soundfile

arguments = sys.argv[1:]
source, target = arguments[arguments.index("-i") + 1], arguments[-1]
if "-f" in arguments:
    sound, rate = soundfile.read(source, dtype="float32", always_2d=True)
    assert arguments[arguments.index("-ar") + 1] == str(rate) == "48000", "the tests use one rate"
    sound.mean(axis=1).astype("<f4").tofile(target)
elif arguments[arguments.index("-b:a") + 1] == "13k":
    sys.exit("Unknown encoder")
else:
    sound, rate = soundfile.read(source, always_2d=True)
    own = {{"32k": 16000, "64k": 18400}}.get(arguments[arguments.index("-b:a") + 1], 24000)
    cutoff = int(arguments[arguments.index("-cutoff") + 1]) if "-cutoff" in arguments else own
    spectrum = numpy.fft.rfft(sound, axis=0)
    spectrum[numpy.fft.rfftfreq(len(sound), 1 / rate) > cutoff] = 0
    soundfile.write(target, numpy.fft.irfft(spectrum, len(sound), axis=0), rate, format="WAV", subtype="FLOAT")
"""


def install_fake_ffmpeg(folder: Path) -> Path:
    """Write the program into a folder, which a test puts in front of the search path."""
    program = folder / "ffmpeg"
    program.write_text(_PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    return folder
