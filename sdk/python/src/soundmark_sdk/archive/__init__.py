"""Verify the archives that the service exports, offline and without trusting their source."""

from soundmark_sdk.archive.failures import ArchiveFailure as ArchiveFailure
from soundmark_sdk.archive.failures import ArchiveRejected as ArchiveRejected
from soundmark_sdk.archive.shapes import ArchiveFormat as ArchiveFormat
from soundmark_sdk.archive.verification import VerifiedArchive as VerifiedArchive
from soundmark_sdk.archive.verification import verify_archive as verify_archive
