-- Logins of browsers. The SQLite twin of this file has the same tables, columns and indexes.

-- What the cookie of a browser is looked up by; other logins have refresh tokens instead.
ALTER TABLE logins ADD COLUMN cookie_hash BYTEA;
-- Whether the external issuer at which the person signed in says that they administer the platform. Of people with a password here, users says so.
ALTER TABLE logins ADD COLUMN is_platform_admin BOOLEAN NOT NULL DEFAULT FALSE;
CREATE UNIQUE INDEX logins_cookie ON logins (cookie_hash) WHERE cookie_hash IS NOT NULL;
