-- Projects of a partner: who works on them, and which tenants take part with which devices.

-- A project. A deleted one keeps its row, so that an older message does not bring it back.
CREATE TABLE partner_projects (
    project_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- The time of the last message about the project, as the partner states it.
    occurred_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);

-- A member of a project. The partner may name personas that the service does not know yet.
CREATE TABLE partner_project_members (
    project_id TEXT NOT NULL REFERENCES partner_projects (project_id) ON DELETE CASCADE,
    persona_uuid UUID NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (project_id, persona_uuid)
);
CREATE INDEX partner_project_members_persona ON partner_project_members (persona_uuid, project_id);

-- A tenant that takes part in a project.
CREATE TABLE partner_project_tenants (
    project_id TEXT NOT NULL REFERENCES partner_projects (project_id) ON DELETE CASCADE,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    joined_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (project_id, tenant_uuid)
);
CREATE INDEX partner_project_tenants_tenant ON partner_project_tenants (tenant_uuid);

-- A device that a tenant has in a project. It leaves with its tenant, and when it is deleted.
CREATE TABLE partner_project_devices (
    project_id TEXT NOT NULL,
    device_instance_id BIGINT NOT NULL
        REFERENCES device_instances (device_instance_id) ON DELETE CASCADE,
    tenant_uuid UUID NOT NULL,
    added_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (project_id, device_instance_id),
    FOREIGN KEY (project_id, tenant_uuid)
        REFERENCES partner_project_tenants (project_id, tenant_uuid) ON DELETE CASCADE
);
CREATE INDEX partner_project_devices_tenant ON partner_project_devices (project_id, tenant_uuid);
CREATE INDEX partner_project_devices_device ON partner_project_devices (device_instance_id);
