"""Support tickets, deliveries of the support desk, and an index of the payment receipts to forget."""

from soundmark.kit.postgres.revision import run_script

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create the tables and the index."""
    run_script("""
-- The message is kept, sealed, until the desk has the ticket. No attempt may post it before `post_after`.
CREATE TABLE tickets (
    organization_id   text        NOT NULL,
    id                text        NOT NULL,
    subject_id        text        NOT NULL,
    request_id        text        NOT NULL,
    subject           text        NOT NULL,
    status            text        NOT NULL,
    sealed_message    bytea,
    conversation_id   bigint,
    mailbox_id        bigint,
    desk_updated_at   timestamptz,
    attempts          integer     NOT NULL DEFAULT 0,
    post_after        timestamptz NOT NULL,
    created_at        timestamptz NOT NULL,
    CONSTRAINT tickets_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT tickets_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT tickets_request_key UNIQUE (organization_id, subject_id, request_id),
    CONSTRAINT tickets_status_check CHECK (status IN ('active', 'pending', 'closed')),
    CONSTRAINT tickets_conversation_check CHECK ((conversation_id IS NULL) = (mailbox_id IS NULL)),
    CONSTRAINT tickets_message_check CHECK ((sealed_message IS NULL) = (conversation_id IS NOT NULL))
);

CREATE INDEX tickets_newest_first ON tickets (organization_id, created_at DESC, id DESC);
CREATE INDEX tickets_by_id ON tickets (id);

-- By which the desk's webhooks, which name no organisation, find their ticket.
CREATE TABLE desk_conversations (
    conversation_id bigint NOT NULL,
    organization_id text   NOT NULL,
    ticket_id       text   NOT NULL,
    CONSTRAINT desk_conversations_pkey PRIMARY KEY (conversation_id),
    CONSTRAINT desk_conversations_ticket_fkey FOREIGN KEY (organization_id, ticket_id)
        REFERENCES tickets (organization_id, id) ON DELETE CASCADE
);

CREATE TABLE desk_deliveries (
    digest      bytea       NOT NULL,
    received_at timestamptz NOT NULL,
    CONSTRAINT desk_deliveries_pkey PRIMARY KEY (digest)
);

CREATE INDEX desk_deliveries_oldest_first ON desk_deliveries (received_at);

ALTER TABLE tickets ENABLE ROW LEVEL SECURITY;
ALTER TABLE tickets FORCE ROW LEVEL SECURITY;
CREATE POLICY tickets_of_tenant ON tickets USING (organization_id = current_tenant());
CREATE POLICY tickets_of_everybody ON tickets FOR SELECT USING (current_tenant() = '*');
CREATE POLICY tickets_resealed ON tickets FOR UPDATE USING (current_tenant() = '*');
CREATE POLICY tickets_of_backup ON tickets FOR SELECT USING (is_backup());

CREATE INDEX payment_receipts_to_forget ON payment_receipts (received_at)
    WHERE status = 'ignored' OR organization_id IS NULL;
""")
