//! Which described statuses the tests reach. Every answer that a test gets is noted in the file
//! that `HUB_TESTS_REACHED` names; when all tests have run, what is described and was not reached
//! has to be listed in `unreached.tsv`, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{object, operations};

/// An operation's id, or `*` for all; a status; why no test reaches it.
const UNREACHED: &str = include_str!("unreached.tsv");

fn listed() -> BTreeMap<(&'static str, &'static str), &'static str> {
    let row = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [id, status, reason] if !reason.is_empty() => ((id, status), reason),
        _ => panic!("a row of unreached.tsv has an operation, a status and a reason: {line}"),
    };
    UNREACHED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(row)
        .collect()
}

#[test]
#[ignore = "needs the file of a whole run: HUB_TESTS_REACHED=FILE cargo test, then this with --ignored"]
fn described_statuses_are_reached_or_listed() {
    let file =
        std::env::var_os("HUB_TESTS_REACHED").expect("HUB_TESTS_REACHED names the file of a run");
    let text = std::fs::read_to_string(file).expect("the file is read");
    let reached: BTreeSet<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let listed = listed();
    let mut faults = Vec::new();
    let mut described = BTreeSet::new();
    for operation in operations() {
        for status in object(&operation.value["responses"]).keys() {
            let (id, status) = (operation.id(), status.as_str());
            described.insert((id, status));
            let is_listed = listed.contains_key(&(id, status));
            match reached.contains(&(id, status)) {
                true if is_listed => faults.push(format!(
                    "{id}\t{status}\tis reached: take it out of unreached.tsv"
                )),
                false if !is_listed && !listed.contains_key(&("*", status)) => {
                    faults.push(format!("{id}\t{status}\tis reached by no test"));
                }
                _ => {}
            }
        }
    }
    let unknown = listed
        .keys()
        .filter(|row| row.0 != "*" && !described.contains(*row));
    faults.extend(unknown.map(|(id, status)| format!("{id}\t{status}\tis described nowhere")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
