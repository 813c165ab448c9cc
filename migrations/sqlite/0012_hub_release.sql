-- Releasing hubs, and claims that show a proof. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- A released hub keeps its row, which its records belong to, and frees its hardware: the next claim of it makes another hub. claim_proof_hash is of the key with
-- which the hub was claimed, whatever its code.
ALTER TABLE hubs ADD COLUMN released_at TEXT;
ALTER TABLE hubs ADD COLUMN claim_proof_hash BLOB;

-- Hubs that got a certificate since their last claim. first_key_hash is of the key of that certificate, and NULL once there was one for another key.
CREATE TABLE hub_enrolments (
    hub_uuid BLOB PRIMARY KEY REFERENCES hubs (hub_uuid),
    first_key_hash BLOB
) STRICT;
INSERT INTO hub_enrolments (hub_uuid) SELECT DISTINCT hub_uuid FROM hub_certificates WHERE revoked_at IS NULL;

-- Tenants deleted so far have not released their hubs.
UPDATE hubs SET released_at = (SELECT tenants.deleted_at FROM tenants WHERE tenants.tenant_uuid = hubs.tenant_uuid), owner_user_uuid = NULL
    WHERE tenant_uuid IN (SELECT tenant_uuid FROM tenants WHERE deleted_at IS NOT NULL);
UPDATE hub_jobs SET status = 'CANCELLED', detail = 'the hub was released', finished_at = updated_at
    WHERE finished_at IS NULL AND hub_uuid IN (SELECT hub_uuid FROM hubs WHERE released_at IS NOT NULL);
DELETE FROM setup_delegations WHERE hub_uuid IN (SELECT hub_uuid FROM hubs WHERE released_at IS NOT NULL);

DROP INDEX hubs_device_instance;
CREATE UNIQUE INDEX hubs_device_instance ON hubs (device_instance_id) WHERE released_at IS NULL;
DROP INDEX hubs_tenant;
CREATE INDEX hubs_tenant ON hubs (tenant_uuid, created_at, hub_uuid) WHERE released_at IS NULL;
-- For the platform, and because a block outlasts a release.
CREATE INDEX hubs_hardware ON hubs (device_instance_id);
CREATE INDEX hubs_of_tenant ON hubs (tenant_uuid);

-- claim_code_uuid names a code to those who must not know it. Earlier codes may have been read by anybody in the tenant, so none of them replaces credentials
-- that are in force.
ALTER TABLE claim_codes ADD COLUMN allow_reclaim INTEGER NOT NULL DEFAULT 0;
ALTER TABLE claim_codes ADD COLUMN claim_code_uuid BLOB NOT NULL DEFAULT X'';
UPDATE claim_codes SET claim_code_uuid = randomblob(16);
CREATE UNIQUE INDEX claim_codes_uuid ON claim_codes (claim_code_uuid);
