-- The networks from which somebody has logged in to an account: a right password from one of them is never held up by the failures of strangers.
CREATE TABLE login_addresses (
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    network TEXT NOT NULL,
    last_login_at TEXT NOT NULL,
    PRIMARY KEY (user_uuid, network)
) STRICT;

-- When the account's person showed a token that was mailed to its e-mail; NULL until then.
ALTER TABLE users ADD COLUMN email_verified_at TEXT;

-- Who made this person a member, until the person accepts; NULL for a membership of the person's own doing, or accepted.
ALTER TABLE personas ADD COLUMN added_by_user_uuid BLOB;
CREATE INDEX personas_accepted ON personas (user_uuid, tenant_uuid) WHERE role IS NOT NULL AND added_by_user_uuid IS NULL;
CREATE INDEX personas_added ON personas (user_uuid, created_at, persona_uuid) WHERE role IS NOT NULL AND added_by_user_uuid IS NOT NULL;

-- Whether somebody is invited, in any tenant.
CREATE INDEX invitations_email ON invitations (email) WHERE accepted_at IS NULL AND revoked_at IS NULL;
