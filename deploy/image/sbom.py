"""What is in the image, as CycloneDX 1.5.

Source: ECMA-424; CycloneDX 1.5, JSON.
"""

import email.parser
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

# Of the serial numbers: each is the one of its contents, so that the same image has the same.
_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


@dataclass(frozen=True, order=True)
class Package:
    """A Debian package or a Python distribution."""

    kind: str
    name: str
    version: str
    licence: str | None = None

    @property
    def url(self) -> str:
        """Its package URL, as scanners look it up."""
        version = quote(self.version, safe="")
        if self.kind == "deb":
            return f"pkg:deb/debian/{quote(self.name, safe='')}@{version}?arch=amd64&distro=debian-12"
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{version}"

    def describe(self) -> dict[str, Any]:
        """Return it as a component."""
        known = {"licenses": [{"license": {"name": self.licence}}]} if self.licence else {}
        return {
            "type": "library",
            "bom-ref": self.url,
            "name": self.name,
            "version": self.version,
            "purl": self.url,
            **known,
        }


def read_distributions(folder: Path) -> list[Package]:
    """Return the Python distributions that are installed in `folder`."""
    found = []
    for file in sorted(folder.glob("*.dist-info/METADATA")):
        metadata = email.parser.HeaderParser().parsestr(file.read_text("utf-8"))
        licence = metadata["License-Expression"] or metadata["License"]
        first_line = licence.strip().splitlines()[0][:80] if licence and licence.strip() else None
        found.append(Package("pypi", metadata["Name"], metadata["Version"], first_line))
    return found


def write_sbom(packages: Iterable[Package], *, version: str, created: str) -> dict[str, Any]:
    """Return the document."""
    components = [package.describe() for package in sorted(packages)]
    refs = [component["bom-ref"] for component in components]
    image = f"pkg:oci/soundmark@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(_NAMESPACE, "\n".join([image, created, *refs])).urn,
        "version": 1,
        "metadata": {
            "timestamp": created,
            "component": {"type": "container", "bom-ref": image, "name": "soundmark", "version": version},
        },
        "components": components,
        "dependencies": [{"ref": image, "dependsOn": refs}],
    }
