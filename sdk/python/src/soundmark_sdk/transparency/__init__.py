"""Verify what the transparency log says: proofs that it holds an entry, and downloaded audit logs."""

from soundmark_sdk.transparency.audit_log import AuditLogRejected as AuditLogRejected
from soundmark_sdk.transparency.audit_log import VerifiedAuditLog as VerifiedAuditLog
from soundmark_sdk.transparency.audit_log import verify_audit_log as verify_audit_log
from soundmark_sdk.transparency.commitments import commit as commit
from soundmark_sdk.transparency.policy import LogPolicy as LogPolicy
from soundmark_sdk.transparency.proof import VerifiedProof as VerifiedProof
from soundmark_sdk.transparency.proof import verify_log_proof as verify_log_proof
