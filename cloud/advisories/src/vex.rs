//! Statements about vulnerabilities, as OpenVEX 0.2.0.

use chrono::DateTime;
use serde::{Deserialize, Deserializer};

use crate::error::DocumentError;
use crate::json;
use crate::text;

const CONTEXT: &str = "https://openvex.dev/ns/v0.2.0";
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;
const MAX_STATEMENTS: usize = 10_000;
/// Of a document, together.
const MAX_PRODUCTS: usize = 100_000;
const MAX_ALIASES: usize = 1_000;
const MAX_VULNERABILITY_CHARS: usize = 200;
const MAX_ID_CHARS: usize = 2_000;
const MAX_TEXT_CHARS: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub author: String,
    pub timestamp: String,
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub vulnerability_id: String,
    pub aliases: Vec<String>,
    pub products: Vec<Product>,
    pub status: Status,
    pub justification: Option<Justification>,
    /// Why the products are not affected.
    pub impact: Option<String>,
    /// What to do about it.
    pub action: Option<String>,
    /// None: that of the document.
    pub timestamp: Option<String>,
}

/// What a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Its package URL, else its id.
    pub name: String,
    /// Its id beside its package URL.
    pub id: Option<String>,
    /// What of it, where that is less than the whole product.
    pub parts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    NotAffected,
    Affected,
    Fixed,
    UnderInvestigation,
}

/// Why products that have a vulnerable component are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Justification {
    ComponentNotPresent,
    VulnerableCodeNotPresent,
    VulnerableCodeNotInExecutePath,
    VulnerableCodeCannotBeControlledByAdversary,
    InlineMitigationsAlreadyExist,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::NotAffected => "not_affected",
            Self::Affected => "affected",
            Self::Fixed => "fixed",
            Self::UnderInvestigation => "under_investigation",
        }
    }
}

impl Justification {
    pub fn name(self) -> &'static str {
        match self {
            Self::ComponentNotPresent => "component_not_present",
            Self::VulnerableCodeNotPresent => "vulnerable_code_not_present",
            Self::VulnerableCodeNotInExecutePath => "vulnerable_code_not_in_execute_path",
            Self::VulnerableCodeCannotBeControlledByAdversary => {
                "vulnerable_code_cannot_be_controlled_by_adversary"
            }
            Self::InlineMitigationsAlreadyExist => "inline_mitigations_already_exist",
        }
    }
}

/// Reads a document.
pub fn read(json: &[u8]) -> Result<Document, DocumentError> {
    /// What it is, which says whether the rest can be read.
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "@context")]
        context: Option<String>,
    }

    #[derive(Deserialize)]
    struct Whole {
        author: String,
        timestamp: String,
        #[serde(deserialize_with = "statements")]
        statements: Vec<Statement>,
    }

    if json.len() > MAX_DOCUMENT_BYTES {
        return Err(DocumentError::of("", "the document is longer than 16 MiB"));
    }
    let kind: Kind = json::read(json)?;
    let context = kind.context.unwrap_or_default();
    if context != CONTEXT {
        let fault = format!("is {context:?}, not {CONTEXT:?}");
        return Err(DocumentError::of("@context", fault));
    }
    let whole: Whole = json::read(json)?;
    if whole.author.trim().is_empty() {
        return Err(DocumentError::of("author", "is empty"));
    }
    if let Some(fault) = text::fault(&whole.author, MAX_ID_CHARS) {
        return Err(DocumentError::of("author", fault));
    }
    if !is_time(&whole.timestamp) {
        return Err(DocumentError::of("timestamp", "is no time of RFC 3339"));
    }
    if whole.statements.is_empty() {
        return Err(DocumentError::of("statements", "is empty"));
    }
    Ok(Document {
        author: whole.author,
        timestamp: whole.timestamp,
        statements: whole.statements,
    })
}

fn is_time(text: &str) -> bool {
    text.len() <= 40 && DateTime::parse_from_rfc3339(text).is_ok()
}

fn statements<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Statement>, D::Error> {
    let mut statements = Vec::new();
    let mut products = 0;
    json::each(deserializer, MAX_STATEMENTS, |entry: Entry| {
        let statement = entry.into_statement()?;
        products += statement.products.iter().map(size_of).sum::<usize>();
        if products > MAX_PRODUCTS {
            return Err(format!(
                "products: more than {MAX_PRODUCTS} in all statements"
            ));
        }
        statements.push(statement);
        Ok(())
    })?;
    Ok(statements)
}

#[derive(Deserialize)]
struct Entry {
    vulnerability: Vulnerability,
    #[serde(default, deserialize_with = "products")]
    products: Vec<Product>,
    status: Status,
    justification: Option<Justification>,
    impact_statement: Option<String>,
    action_statement: Option<String>,
    timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Vulnerability {
    name: String,
    #[serde(default, deserialize_with = "aliases")]
    aliases: Vec<String>,
}

impl Entry {
    fn into_statement(self) -> Result<Statement, String> {
        if self.vulnerability.name.is_empty() {
            return Err("vulnerability.name: is empty".to_owned());
        }
        if let Some(fault) = text::fault(&self.vulnerability.name, MAX_VULNERABILITY_CHARS) {
            return Err(format!("vulnerability.name: {fault}"));
        }
        let impact = plain("impact_statement", self.impact_statement)?;
        let action = plain("action_statement", self.action_statement)?;
        if self.timestamp.as_deref().is_some_and(|time| !is_time(time)) {
            return Err("timestamp: is no time of RFC 3339".to_owned());
        }
        let missing = match self.status {
            Status::NotAffected if self.justification.is_none() && impact.is_none() => {
                Some("justification or impact_statement")
            }
            Status::Affected if action.is_none() => Some("action_statement"),
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(format!(
                "{missing}: is missing, which the status {} needs",
                self.status.name()
            ));
        }
        if self.justification.is_some() && self.status != Status::NotAffected {
            return Err(format!(
                "justification: the status {} has none",
                self.status.name()
            ));
        }
        Ok(Statement {
            vulnerability_id: self.vulnerability.name,
            aliases: self.vulnerability.aliases,
            products: self.products,
            status: self.status,
            justification: self.justification,
            impact,
            action,
            timestamp: self.timestamp,
        })
    }
}

/// A text of people, which may have lines. None: it is empty.
fn plain(field: &str, text: Option<String>) -> Result<Option<String>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let is_foreign = |character: char| character.is_control() && !"\t\r\n".contains(character);
    if text.chars().any(is_foreign) {
        return Err(format!("{field}: contains a control character"));
    }
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(format!("{field}: longer than {MAX_TEXT_CHARS} characters"));
    }
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn aliases<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut aliases = Vec::new();
    json::each(
        deserializer,
        MAX_ALIASES,
        |alias: String| match text::fault(&alias, MAX_VULNERABILITY_CHARS) {
            Some(fault) => Err(fault),
            None => {
                aliases.push(alias);
                Ok(())
            }
        },
    )?;
    Ok(aliases)
}

#[derive(Deserialize)]
struct ProductEntry {
    #[serde(rename = "@id")]
    id: Option<String>,
    identifiers: Option<Identifiers>,
    #[serde(default, deserialize_with = "parts")]
    subcomponents: Vec<String>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "@id")]
    id: Option<String>,
    identifiers: Option<Identifiers>,
}

#[derive(Deserialize)]
struct Identifiers {
    purl: Option<String>,
}

/// The name, and the id if that is not the name.
fn named(
    id: Option<String>,
    identifiers: Option<Identifiers>,
) -> Result<(String, Option<String>), String> {
    let purl = identifiers.and_then(|identifiers| identifiers.purl);
    let (name, id) = match purl {
        Some(purl) => (purl, id),
        None => (id.unwrap_or_default(), None),
    };
    if name.is_empty() {
        return Err("neither @id nor identifiers.purl is there".to_owned());
    }
    let fault = |text: &String| text::fault(text, MAX_ID_CHARS);
    match fault(&name).or_else(|| id.as_ref().and_then(fault)) {
        Some(fault) => Err(format!("@id or identifiers.purl: {fault}")),
        None => Ok((name, id)),
    }
}

/// A product with its parts.
fn size_of(product: &Product) -> usize {
    1 + product.parts.len()
}

fn products<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Product>, D::Error> {
    let (mut products, mut size) = (Vec::new(), 0);
    json::each(deserializer, MAX_PRODUCTS, |entry: ProductEntry| {
        let (name, id) = named(entry.id, entry.identifiers)?;
        let product = Product {
            name,
            id,
            parts: entry.subcomponents,
        };
        size += size_of(&product);
        products.push(product);
        match size > MAX_PRODUCTS {
            true => Err(format!("more than {MAX_PRODUCTS} products")),
            false => Ok(()),
        }
    })?;
    Ok(products)
}

fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut names = Vec::new();
    json::each(deserializer, MAX_PRODUCTS, |part: Part| {
        names.push(named(part.id, part.identifiers)?.0);
        Ok(())
    })?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document(statement: Value) -> Value {
        json!({
            "@context": CONTEXT,
            "@id": "https://example.com/vex/1",
            "author": "Example Ltd.",
            "role": "Document Creator",
            "timestamp": "2024-05-01T12:00:00+02:00",
            "version": 1,
            "statements": [statement]
        })
    }

    fn statement(status: &str) -> Value {
        json!({ "vulnerability": { "name": "CVE-2024-1" }, "status": status })
    }

    fn fault_of(document: &Value) -> String {
        let error = read(document.to_string().as_bytes()).expect_err("no document");
        error.to_string()
    }

    #[test]
    fn a_document_is_read() {
        let read = read(
            document(json!({
                "vulnerability": {
                    "@id": "https://nvd.nist.gov/vuln/detail/CVE-2024-1",
                    "name": "CVE-2024-1",
                    "description": "…",
                    "aliases": ["GHSA-aaaa-bbbb-cccc"]
                },
                "products": [
                    { "@id": "https://example.com/app" },
                    {
                        "@id": "pkg:oci/app",
                        "identifiers": { "purl": "pkg:oci/app@sha256%3A1", "cpe23": "cpe:2.3:a" },
                        "hashes": { "sha-256": "00" },
                        "subcomponents": [{ "@id": "pkg:npm/left-pad@1.0.0" }]
                    }
                ],
                "status": "not_affected",
                "justification": "vulnerable_code_not_in_execute_path",
                "impact_statement": " Never\ncalled. ",
                "timestamp": "2024-05-02T00:00:00Z"
            }))
            .to_string()
            .as_bytes(),
        )
        .expect("a document");
        assert_eq!(read.author, "Example Ltd.");
        assert_eq!(read.timestamp, "2024-05-01T12:00:00+02:00");
        let expected = Statement {
            vulnerability_id: "CVE-2024-1".to_owned(),
            aliases: vec!["GHSA-aaaa-bbbb-cccc".to_owned()],
            products: vec![
                Product {
                    name: "https://example.com/app".to_owned(),
                    id: None,
                    parts: Vec::new(),
                },
                Product {
                    name: "pkg:oci/app@sha256%3A1".to_owned(),
                    id: Some("pkg:oci/app".to_owned()),
                    parts: vec!["pkg:npm/left-pad@1.0.0".to_owned()],
                },
            ],
            status: Status::NotAffected,
            justification: Some(Justification::VulnerableCodeNotInExecutePath),
            impact: Some("Never\ncalled.".to_owned()),
            action: None,
            timestamp: Some("2024-05-02T00:00:00Z".to_owned()),
        };
        assert_eq!(read.statements, [expected]);
    }

    #[test]
    fn a_status_has_what_it_needs() {
        for (status, member, text, is_read) in [
            ("not_affected", "status_notes", "x", false),
            ("not_affected", "impact_statement", " ", false),
            ("not_affected", "impact_statement", "x", true),
            (
                "not_affected",
                "justification",
                "component_not_present",
                true,
            ),
            ("not_affected", "justification", "because", false),
            ("affected", "impact_statement", "x", false),
            ("affected", "action_statement", "x", true),
            ("fixed", "status_notes", "x", true),
            ("fixed", "justification", "component_not_present", false),
            ("under_investigation", "status_notes", "x", true),
            ("maybe", "status_notes", "x", false),
        ] {
            let mut statement = statement(status);
            statement[member] = json!(text);
            let read = read(document(statement).to_string().as_bytes());
            assert_eq!(read.is_ok(), is_read, "{status}, {member}: {text}");
        }
        assert_eq!(
            fault_of(&document(statement("affected"))),
            "statements: element 0: action_statement: is missing, which the status affected needs"
        );
    }

    #[test]
    fn names_are_those_of_the_format() {
        for status in [
            Status::NotAffected,
            Status::Affected,
            Status::Fixed,
            Status::UnderInvestigation,
        ] {
            let read: Status = serde_json::from_value(json!(status.name())).expect("a status");
            assert_eq!(read, status);
        }
        for justification in [
            Justification::ComponentNotPresent,
            Justification::VulnerableCodeNotPresent,
            Justification::VulnerableCodeNotInExecutePath,
            Justification::VulnerableCodeCannotBeControlledByAdversary,
            Justification::InlineMitigationsAlreadyExist,
        ] {
            let name = json!(justification.name());
            let read: Justification = serde_json::from_value(name).expect("a justification");
            assert_eq!(read, justification);
        }
    }

    /// Written by another library (vexipy), and validated by it in tests/documents.
    #[test]
    fn documents_of_others_are_read() {
        let all = include_bytes!("../../../tests/data/openvex/all-statuses.json");
        let all = read(all).expect("a document");
        let statuses: Vec<&str> = all
            .statements
            .iter()
            .map(|statement| statement.status.name())
            .collect();
        assert_eq!(
            statuses,
            [
                "not_affected",
                "not_affected",
                "affected",
                "fixed",
                "under_investigation"
            ]
        );
        let products = all
            .statements
            .first()
            .map(|first| first.products.as_slice());
        let Some([package, app]) = products else {
            panic!("{products:?}");
        };
        assert!(package.name.starts_with("pkg:deb/debian/openssl@3.0.11-1"));
        assert_eq!(app.name, "https://example.com/apps/logger/1.4.0");
        assert_eq!(
            app.parts,
            ["pkg:cargo/rustls@0.23.4", "pkg:npm/%40example/ws@8.0.1"]
        );
        let justified = include_bytes!("../../../tests/data/openvex/justifications.json");
        let justified = read(justified).expect("a document");
        assert_eq!(justified.statements.len(), 5);
        assert!(
            justified
                .statements
                .iter()
                .all(|one| one.justification.is_some())
        );
        let impact = include_bytes!("../../../tests/data/openvex/impact-alone.json");
        let impact = read(impact).expect("a document");
        assert!(impact.statements.iter().all(|one| one.impact.is_some()));
    }

    #[test]
    fn what_is_no_document_is_refused_by_field() {
        for (pointer, value, expected) in [
            (
                "/@context",
                json!("https://openvex.dev/ns"),
                "@context: is \"https://openvex.dev/ns\"",
            ),
            ("/@context", json!(["x"]), "@context: invalid type"),
            ("/author", json!(" "), "author: is empty"),
            (
                "/author",
                json!("a\u{0}"),
                "author: contains a control character",
            ),
            ("/timestamp", json!("now"), "timestamp: is no time"),
            ("/statements", json!([]), "statements: is empty"),
            ("/statements", json!("x"), "statements: invalid type"),
            ("/statements/0", json!("x"), "statements[0]: invalid type"),
            (
                "/statements/0/vulnerability",
                json!("CVE-2024-1"),
                "statements[0].vulnerability: invalid type",
            ),
            (
                "/statements/0/vulnerability/name",
                json!("x".repeat(201)),
                "statements: element 0: vulnerability.name: longer than 200 characters",
            ),
            (
                "/statements/0/products",
                json!([{}]),
                "statements[0].products: element 0: neither @id nor",
            ),
            (
                "/statements/0/timestamp",
                json!("now"),
                "statements: element 0: timestamp: is no",
            ),
            (
                "/statements/0/impact_statement",
                json!("x".repeat(10_001)),
                "statements: element 0: impact_statement: longer than 10000",
            ),
        ] {
            let mut statement = statement("fixed");
            statement["products"] = json!([]);
            statement["timestamp"] = Value::Null;
            statement["impact_statement"] = Value::Null;
            let mut document = document(statement);
            *document.pointer_mut(pointer).expect("a member") = value;
            let fault = fault_of(&document);
            assert!(fault.starts_with(expected), "{fault}");
        }
        let bom = json!({ "bomFormat": "CycloneDX", "specVersion": "1.5" });
        assert!(fault_of(&bom).starts_with("@context: is \"\""));
        let many = vec![json!({ "@id": "x" }); MAX_PRODUCTS + 1];
        let mut statement = statement("fixed");
        statement["products"] = json!(many);
        assert!(fault_of(&document(statement)).contains("more than 100000"));
    }
}
