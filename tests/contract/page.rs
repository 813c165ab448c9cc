//! `docs/api/operations.md`, the page of all URLs: written from the API description, never by hand.
//! `HUB_TESTS_WRITE=1` writes it again.

use std::collections::BTreeMap;

use super::document::{Operation, operations};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api/operations.md");

const HEAD: &str = "# Operations

All URLs of the service, by subject. This page is generated from the API description
(`/openapi.json`); change the routes, then write it with
`HUB_TESTS_WRITE=1 cargo test -p hub-tests page_of_all_urls`.

`Access` names who may call: `public`, `user` and `app` (a signed-in person), `hub`, `platform` (a
platform administrator), or a permission in the tenant of the request.
";

fn page() -> String {
    let mut by_area: BTreeMap<&str, Vec<Operation>> = BTreeMap::new();
    for operation in operations() {
        by_area.entry(operation.area()).or_default().push(operation);
    }
    let mut page = HEAD.to_owned();
    for (area, operations) in by_area {
        page.push_str(&format!(
            "\n## {area}\n\n| Operation | URL | Access | |\n| --- | --- | --- | --- |\n"
        ));
        for operation in operations {
            let (name, id, access) = (operation.name(), operation.id(), operation.access());
            let summary = operation.value["summary"].as_str().unwrap_or_default();
            page.push_str(&format!("| `{id}` | `{name}` | {access} | {summary} |\n"));
        }
    }
    page
}

#[test]
fn page_of_all_urls_is_what_the_service_describes() {
    let page = page();
    if std::env::var_os("HUB_TESTS_WRITE").is_some() {
        std::fs::write(FILE, &page).expect("the page is written");
    }
    let checked_in = std::fs::read_to_string(FILE).unwrap_or_default();
    let new: Vec<&str> = page
        .lines()
        .filter(|line| !checked_in.lines().any(|other| other == *line))
        .collect();
    assert!(
        page == checked_in,
        "docs/api/operations.md is stale; write it with HUB_TESTS_WRITE=1. New: {new:#?}"
    );
}
