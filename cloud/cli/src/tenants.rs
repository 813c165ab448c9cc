//! `hub tenants`: lists, creates and chooses tenants.

use clap::Subcommand;
use hub_client::{Tenant, operations};
use serde_json::{Value, json};

use crate::connect::{chosen, without_tenant};
use crate::failure::Failure;
use crate::global::Global;
use crate::profiles::Store;
use crate::terminal::{Table, note, print_json, short_time};
use crate::text::printable;

#[derive(Debug, clap::Args)]
pub struct TenantsOptions {
    #[command(subcommand)]
    pub command: Option<TenantsCommand>,
}

#[derive(Debug, Subcommand)]
pub enum TenantsCommand {
    /// List your tenants
    List,
    /// Create a tenant, and select it
    Create { name: String },
    /// Select a tenant by its uuid or its name
    Use { tenant: String },
}

pub async fn run(global: &Global, options: TenantsOptions) -> Result<(), Failure> {
    let client = without_tenant(global).await?;
    match options.command.unwrap_or(TenantsCommand::List) {
        TenantsCommand::List if global.json => print_json(&Value::Array(
            client.list(operations::TENANTS.call()).await?,
        )),
        TenantsCommand::List => {
            let tenants: Vec<Tenant> = client.list(operations::TENANTS.call()).await?;
            let stored = Store::open()?.read()?.profiles.remove(&global.profile);
            let current = stored.and_then(|profile| profile.tenant_uuid);
            let mut table = Table::new(&["", "NAME", "ROLE", "TENANT", "CREATED"]);
            for tenant in tenants {
                let mark = if current == Some(tenant.tenant_uuid) {
                    "*"
                } else {
                    ""
                };
                let created = short_time(tenant.created_at);
                let uuid = tenant.tenant_uuid.to_string();
                table.row(vec![
                    mark.to_owned(),
                    printable(&tenant.name),
                    printable(&tenant.role),
                    uuid,
                    created,
                ]);
            }
            table.print("You have no tenant yet: hub tenants create NAME")
        }
        TenantsCommand::Create { name } => {
            let created: Value = client
                .call(operations::CREATE_TENANT.call().body(json!({"name": name})))
                .await?;
            let tenant: Tenant = serde_json::from_value(created.clone())?;
            select(global, &tenant)?;
            match global.json {
                true => print_json(&created),
                false => Ok(()),
            }
        }
        TenantsCommand::Use { tenant } => {
            let tenants: Vec<Tenant> = client.list(operations::TENANTS.call()).await?;
            select(global, chosen(&tenants, Some(&tenant))?)
        }
    }
}

fn select(global: &Global, tenant: &Tenant) -> Result<(), Failure> {
    Store::open()?.lock()?.change(&global.profile, |profile| {
        profile.tenant_uuid = Some(tenant.tenant_uuid)
    })?;
    note(&format!(
        "Using tenant {} ({}).",
        printable(&tenant.name),
        tenant.tenant_uuid
    ));
    Ok(())
}
