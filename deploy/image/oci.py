"""An OCI image as a folder and as one file, from folders on this machine; the same bytes for the same files."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_EXECUTABLE = 0o755
_PLAIN = 0o644


@dataclass(frozen=True)
class Blob:
    """A file of the image, named for its digest."""

    media_type: str
    digest: str
    size: int

    def describe(self) -> dict[str, Any]:
        """Return its descriptor, as manifests have it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


class Layout:
    """An OCI image layout in `folder`, which does not exist yet.

    Source: OCI Image Format Specification 1.0, image layout.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._blobs = folder / "blobs" / "sha256"
        self._blobs.mkdir(parents=True)

    def add(self, media_type: str, content: bytes) -> Blob:
        """Add one blob."""
        digest = hashlib.sha256(content).hexdigest()
        (self._blobs / digest).write_bytes(content)
        return Blob(f"application/vnd.oci.image.{media_type}", f"sha256:{digest}", len(content))

    def finish(self, layers: Iterable[bytes], config: Mapping[str, Any], created: str, name: str) -> Blob:
        """Write the layers (tar archives), the configuration and the manifest, which is returned."""
        blobs, plain_digests = [], []
        for layer in layers:
            plain_digests.append(f"sha256:{hashlib.sha256(layer).hexdigest()}")
            blobs.append(self.add("layer.v1.tar+gzip", gzip.compress(layer, compresslevel=6, mtime=0)))
        described = {
            "created": created,
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": plain_digests},
            "history": [{"created": created, "created_by": "deploy/image/build.py"} for _ in blobs],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.add("config.v1+json", _dump(described)).describe(),
            "layers": [blob.describe() for blob in blobs],
            "annotations": config["Labels"],
        }
        written = self.add("manifest.v1+json", _dump(manifest))
        tagged = {**written.describe(), "annotations": {"org.opencontainers.image.ref.name": name}}
        (self._folder / "index.json").write_bytes(_dump({"schemaVersion": 2, "manifests": [tagged]}))
        (self._folder / "oci-layout").write_bytes(_dump({"imageLayoutVersion": "1.0.0"}))
        return written


def pack(root: Path, *, mtime: int, modes: Mapping[str, int] | None = None) -> bytes:
    """Return the files below `root` as a tar archive: sorted, all owned by root and of the same time.

    In the image everybody may read a file and only its owner may write it; its mode on this machine does not count.
    `modes` lists the exceptions by path.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            member = tar.gettarinfo(str(path), name)
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            member.mtime = mtime
            if not member.issym():
                may_run = member.isdir() or bool(member.mode & 0o100)
                member.mode = (modes or {}).get(name, _EXECUTABLE if may_run else _PLAIN)
            _add(tar, member, path)
    return archive.getvalue()


def _add(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    # A second name of a file would be a link to the first, which depends on how the folder was made.
    if member.islnk():
        member.type, member.linkname, member.size = tarfile.REGTYPE, "", path.stat().st_size
    content: IO[bytes] | None = path.open("rb") if member.isreg() else None
    try:
        tar.addfile(member, content)
    finally:
        if content is not None:
            content.close()


def archive(layout: Path, file: Path) -> None:
    """Write a layout as the one file that podman, docker and skopeo load."""
    with file.open("wb") as stream:
        stream.write(pack(layout, mtime=0))


def _dump(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, indent=1).encode()
