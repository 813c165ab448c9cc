//! CISA's catalog of vulnerabilities that are known to be exploited.

use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Deserializer};

use crate::error::FeedError;
use crate::json;
use crate::text;

const MAX_CATALOG_BYTES: usize = 64 * 1024 * 1024;
const MAX_VULNERABILITIES: usize = 100_000;
const MAX_ID_CHARS: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownExploited {
    pub vulnerability_id: String,
    /// `YYYY-MM-DD`
    pub added_on: String,
    /// The day by which agencies have to act.
    pub due_on: Option<String>,
    /// Known to be used by ransomware.
    pub ransomware: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    pub version: String,
    pub released_at: String,
    pub vulnerabilities: Vec<KnownExploited>,
}

/// Reads a catalog.
pub fn read(json: &[u8]) -> Result<Catalog, FeedError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Whole {
        catalog_version: String,
        date_released: String,
        count: Option<usize>,
        #[serde(deserialize_with = "vulnerabilities")]
        vulnerabilities: Vec<KnownExploited>,
    }

    if json.len() > MAX_CATALOG_BYTES {
        return Err(FeedError::of("", "the catalog is longer than 64 MiB"));
    }
    let whole: Whole = json::read(json)?;
    if let Some(fault) = text::fault(&whole.catalog_version, MAX_ID_CHARS) {
        return Err(FeedError::of("catalogVersion", fault));
    }
    if DateTime::parse_from_rfc3339(&whole.date_released).is_err() {
        return Err(FeedError::of("dateReleased", "is no time of RFC 3339"));
    }
    let listed = whole.vulnerabilities.len();
    if whole.count.is_some_and(|count| count != listed) {
        let fault = format!("differs from the number of vulnerabilities, {listed}");
        return Err(FeedError::of("count", fault));
    }
    Ok(Catalog {
        version: whole.catalog_version,
        released_at: whole.date_released,
        vulnerabilities: whole.vulnerabilities,
    })
}

fn vulnerabilities<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<KnownExploited>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        #[serde(rename = "cveID")]
        cve_id: String,
        date_added: String,
        due_date: Option<String>,
        known_ransomware_campaign_use: Option<String>,
    }

    let mut vulnerabilities = Vec::new();
    json::each(deserializer, MAX_VULNERABILITIES, |entry: Entry| {
        if let Some(fault) = text::fault(&entry.cve_id, MAX_ID_CHARS) {
            return Err(format!("cveID: {fault}"));
        }
        let due_on = entry.due_date.filter(|date| !date.is_empty());
        for (field, date) in [
            ("dateAdded", Some(&entry.date_added)),
            ("dueDate", due_on.as_ref()),
        ] {
            if date.is_some_and(|date| !is_date(date)) {
                return Err(format!("{field}: is no date"));
            }
        }
        let use_of_ransomware = entry.known_ransomware_campaign_use;
        vulnerabilities.push(KnownExploited {
            vulnerability_id: entry.cve_id,
            added_on: entry.date_added,
            due_on,
            ransomware: use_of_ransomware.is_some_and(|word| word.eq_ignore_ascii_case("known")),
        });
        Ok(())
    })?;
    Ok(vulnerabilities)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn catalog() -> Value {
        json!({
            "title": "CISA Catalog of Known Exploited Vulnerabilities",
            "catalogVersion": "2024.07.02",
            "dateReleased": "2024-07-02T14:00:41.4216Z",
            "count": 2,
            "vulnerabilities": [
                {
                    "cveID": "CVE-2021-27104",
                    "vendorProject": "Accellion",
                    "product": "FTA",
                    "vulnerabilityName": "Accellion FTA OS Command Injection",
                    "dateAdded": "2021-11-03",
                    "shortDescription": "…",
                    "requiredAction": "Apply updates.",
                    "dueDate": "2021-11-17",
                    "knownRansomwareCampaignUse": "Known",
                    "notes": ""
                },
                { "cveID": "CVE-2024-1", "dateAdded": "2024-02-29", "dueDate": "",
                  "knownRansomwareCampaignUse": "Unknown" }
            ]
        })
    }

    #[test]
    fn a_catalog_is_read() {
        let read = read(catalog().to_string().as_bytes()).expect("a catalog");
        assert_eq!(read.version, "2024.07.02");
        assert_eq!(read.released_at, "2024-07-02T14:00:41.4216Z");
        let known = |id: &str, added: &str, due: Option<&str>, ransomware| KnownExploited {
            vulnerability_id: id.to_owned(),
            added_on: added.to_owned(),
            due_on: due.map(str::to_owned),
            ransomware,
        };
        let expected = [
            known("CVE-2021-27104", "2021-11-03", Some("2021-11-17"), true),
            known("CVE-2024-1", "2024-02-29", None, false),
        ];
        assert_eq!(read.vulnerabilities, expected);
    }

    #[test]
    fn what_is_no_catalog_is_refused_by_field() {
        for (pointer, value, expected) in [
            ("/catalogVersion", json!(1), "catalogVersion: invalid type"),
            ("/dateReleased", json!("today"), "dateReleased: is no time"),
            (
                "/count",
                json!(3),
                "count: differs from the number of vulnerabilities, 2",
            ),
            (
                "/vulnerabilities",
                json!({}),
                "vulnerabilities: invalid type",
            ),
            (
                "/vulnerabilities/1/cveID",
                json!("\u{1b}"),
                "vulnerabilities: element 1: cveID: contains",
            ),
            (
                "/vulnerabilities/1/dateAdded",
                json!("2024-02-30"),
                "vulnerabilities: element 1: dateAdded",
            ),
            (
                "/vulnerabilities/1/dueDate",
                json!("2024-2-3"),
                "vulnerabilities: element 1: dueDate",
            ),
        ] {
            let mut catalog = catalog();
            *catalog.pointer_mut(pointer).expect("a member") = value;
            let error = read(catalog.to_string().as_bytes()).expect_err("no catalog");
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        assert!(read(b"{\"id\":\"CVE-2024-1\"}").is_err());
    }
}
