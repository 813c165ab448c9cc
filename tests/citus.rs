//! What Citus needs of the tables that it distributes, and of the statements on them. No cluster is
//! there to try it: the schema and the sources are read.

use std::collections::BTreeSet;

use hub_base::db::distributed::DISTRIBUTED;
use hub_tests::postgres::Database;
use hub_tests::{Backend, on_postgres};
use sqlx::Connection;
use sqlx_postgres::PgConnection;

use crate::tables::{created, literals, modules};

/// Where one statement reads rows that are on workers together with rows of the coordinator: a
/// module, the table, and why that is worth it. None of them is needed to store an upload.
const READ_TOGETHER: [(&str, &str, &str); 10] = [
    (
        "fleet/hubs/store/mod",
        "hub_contacts",
        "pages show hubs with their last contact",
    ),
    (
        "fleet/hubs/store/paces",
        "hub_contacts",
        "the live hubs of each tenant",
    ),
    (
        "fleet/hubs/store/watch",
        "hub_contacts",
        "the silent hubs of a tenant",
    ),
    (
        "fleet/update_policies/store/rollouts",
        "hub_contacts",
        "the silent hubs of a rollout",
    ),
    (
        "ingest/shares",
        "hub_contacts",
        "live hubs, while a limit is shared",
    ),
    (
        "ingest/quota",
        "stored_bytes",
        "the platform's list of tenants near a limit",
    ),
    (
        "devices/device_instances/store",
        "device_states",
        "pages show devices with their state",
    ),
    (
        "composed/end_users/store",
        "device_states",
        "the devices near a person's hubs",
    ),
    (
        "composed/account_deletion/store",
        "device_states",
        "devices that one person has heard",
    ),
    (
        "composed/account_deletion/store",
        "ble_device_hours",
        "devices that one person has heard",
    ),
];

/// Where a statement is on the rows of all tenants at once.
const OF_ALL_TENANTS: [(&str, &str, &str); 2] = [
    (
        "ingest/quota",
        "stored_bytes",
        "the platform's numbers, and months that are gone for all",
    ),
    (
        "composed/dashboard/store",
        "ble_minutes",
        "the platform's numbers",
    ),
];

/// The texts of SQL in one item of a source file.
struct Item<'a> {
    texts: Vec<&'a str>,
}

/// The items of a source file outside of its tests: what stands between lines that begin with a
/// closing brace or with a constant.
fn items(source: &str) -> Vec<Item<'_>> {
    let source = source
        .split("\n#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default();
    let mut found = Vec::new();
    for part in source.split("\n}\n") {
        let (mut pieces, mut rest) = (Vec::new(), part);
        while let Some(start) = rest.find("const ") {
            let Some(length) = rest[start..].find(";\n") else {
                break;
            };
            pieces.extend([&rest[..start], &rest[start..start + length]]);
            rest = &rest[start + length..];
        }
        pieces.push(rest);
        for text in pieces {
            found.push(Item {
                texts: literals(text).into_iter().map(|(_, text)| text).collect(),
            });
        }
    }
    found
}

/// The tables of a text of SQL.
fn tables_in(text: &str) -> BTreeSet<&str> {
    let words: Vec<&str> = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = BTreeSet::new();
    for pair in words.windows(2) {
        if matches!(pair[0], "FROM" | "JOIN" | "INTO" | "UPDATE") {
            found.insert(pair[1]);
        }
    }
    found
}

/// What is wrong with the statements of an item: a distributed table, and the fault.
fn faults<'a>(item: &Item<'a>, tables: &BTreeSet<String>) -> Vec<(&'a str, Fault)> {
    let names_tenant = item.texts.iter().any(|text| text.contains("tenant_uuid"));
    let is_distributed = |text: &&str| {
        let named = tables_in(text);
        text.contains("FROM ") && named.iter().any(|name| DISTRIBUTED.contains(name))
    };
    let begins_distributed = item.texts.iter().any(is_distributed);
    let mut found = Vec::new();
    for &text in &item.texts {
        let named = tables_in(text);
        let is_joined = text.contains("JOIN ") && !text.contains("FROM ") && !begins_distributed;
        let others = named
            .iter()
            .any(|name| tables.contains(*name) && !DISTRIBUTED.contains(name));
        for table in named {
            if !DISTRIBUTED.contains(&table) {
                continue;
            }
            if others || is_joined {
                found.push((table, Fault::ReadTogether));
            }
            // Each statement names its tenant, but where its columns or its conditions are in other
            // texts.
            let is_begun = text.ends_with("WHERE ");
            let names_it = text.contains("tenant_uuid");
            if !is_begun && !names_it && (text.contains("WHERE") || !names_tenant) {
                found.push((table, Fault::OfAllTenants));
            }
        }
    }
    found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    ReadTogether,
    OfAllTenants,
}

#[test]
fn faults_of_statements_are_found() {
    let tables = created();
    let of = |source: &str| {
        let items = items(source);
        let found = items.iter().flat_map(|item| faults(item, &tables));
        found
            .map(|(table, fault)| (table.to_owned(), fault))
            .collect::<Vec<_>>()
    };
    let fine = "fn a() {\n sql(\"SELECT 1 FROM hub_logs WHERE tenant_uuid = $1\");\n}\n\
                const COLUMNS: &str = \"tenant_uuid, kind\";\n\
                fn b() {\n sql(\"SELECT name FROM tenants\");\n}\n";
    assert_eq!(of(fine), []);
    let all = "fn a() {\n sql(\"DELETE FROM hub_logs WHERE hub_log_id < $1\");\n}\n";
    assert_eq!(of(all), [("hub_logs".to_owned(), Fault::OfAllTenants)]);
    let joined = "fn a() {\n sql(\"SELECT 1 FROM hub_logs l JOIN hubs h \\\n \
                  ON h.hub_uuid = l.hub_uuid WHERE l.tenant_uuid = $1\");\n}\n";
    assert_eq!(of(joined), [("hub_logs".to_owned(), Fault::ReadTogether)]);
    let pushed = "const NEAR: &str = \" JOIN device_states s ON s.tenant_uuid = h.tenant_uuid\";\n";
    assert_eq!(
        of(pushed),
        [("device_states".to_owned(), Fault::ReadTogether)]
    );
}

#[test]
fn a_statement_on_a_distributed_table_names_its_tenant_and_reads_nothing_else() {
    let tables = created();
    let mut unlisted = BTreeSet::new();
    let mut needed = BTreeSet::new();
    for (module, source) in modules() {
        for (table, fault) in items(&source).iter().flat_map(|item| faults(item, &tables)) {
            let list: &[_] = match fault {
                Fault::ReadTogether => &READ_TOGETHER,
                Fault::OfAllTenants => &OF_ALL_TENANTS,
            };
            match list.iter().find(|row| row.0 == module && row.1 == table) {
                Some((module, table, _)) => drop(needed.insert((fault, *module, *table))),
                None => drop(unlisted.insert(format!("{module}: {table}: {fault:?}"))),
            }
        }
    }
    assert!(unlisted.is_empty(), "{unlisted:#?}");
    let listed = READ_TOGETHER
        .iter()
        .map(|row| (Fault::ReadTogether, row.0, row.1));
    let listed = listed.chain(
        OF_ALL_TENANTS
            .iter()
            .map(|row| (Fault::OfAllTenants, row.0, row.1)),
    );
    let superfluous: Vec<_> = listed.filter(|row| !needed.contains(row)).collect();
    assert!(superfluous.is_empty(), "not needed: {superfluous:?}");
}

on_postgres!(distributed_tables_stand_by_themselves);
async fn distributed_tables_stand_by_themselves(_: Backend) {
    let database = Database::create().await;
    let mut db = PgConnection::connect(&database.url)
        .await
        .expect("the database opens");
    let tables: Vec<String> = DISTRIBUTED.map(str::to_owned).to_vec();
    let found: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relname = ANY($1) AND relkind IN ('r', 'p')",
    )
    .bind(&tables)
    .fetch_all(&mut db)
    .await
    .expect("the tables");
    assert_eq!(found.len(), DISTRIBUTED.len(), "{found:?}");
    let keys: Vec<(String, String)> = sqlx::query_as(
        "SELECT i.indrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i \
         JOIN pg_class t ON t.oid = i.indrelid WHERE t.relname = ANY($1) AND i.indisunique \
         AND pg_get_indexdef(i.indexrelid, 1, true) <> 'tenant_uuid'",
    )
    .bind(&tables)
    .fetch_all(&mut db)
    .await
    .expect("the keys");
    assert!(keys.is_empty(), "a key begins with the tenant: {keys:?}");
    let without: Vec<String> = sqlx::query_scalar(
        "SELECT t.relname::text FROM pg_class t WHERE t.relname = ANY($1) AND NOT EXISTS \
         (SELECT 1 FROM pg_index i WHERE i.indrelid = t.oid AND i.indisprimary)",
    )
    .bind(&tables)
    .fetch_all(&mut db)
    .await
    .expect("tables without a key");
    assert!(without.is_empty(), "without a primary key: {without:?}");
    let references: Vec<(String, String)> = sqlx::query_as(
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint \
         WHERE contype = 'f' AND (conrelid = ANY($1::text[]::regclass[]) \
         OR confrelid = ANY($1::text[]::regclass[]))",
    )
    .bind(&tables)
    .fetch_all(&mut db)
    .await
    .expect("the references");
    assert!(
        references.is_empty(),
        "nothing is referred to: {references:?}"
    );
    let triggers: Vec<String> = sqlx::query_scalar(
        "SELECT tgname::text FROM pg_trigger \
         WHERE NOT tgisinternal AND tgrelid = ANY($1::text[]::regclass[])",
    )
    .bind(&tables)
    .fetch_all(&mut db)
    .await
    .expect("the triggers");
    assert!(triggers.is_empty(), "no triggers: {triggers:?}");
}
