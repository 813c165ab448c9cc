//! `GET /tenant/vulnerabilities/openvex`: all statements of the tenant as one document of OpenVEX
//! 0.2.0. It is read page by page while it is sent.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hub_base::budget::{Held, Holder};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::hold_answer;
use hub_core::http::file::{attachment_in_parts, attachment_response};
use hub_core::http::operation::operation_failing;
use hub_fleet::releases;
use hub_identity::authz::{Authorized, Scope, permission as perm};
use hub_people::tenants;
use hub_protocol::ReleaseUuid;
use serde_json::{Value, json};
use uuid::Uuid;

use super::statements::Statement;
use super::store::statements as store;
use crate::Parts;
use crate::purl::encoded;

const JSON: &str = "application/json";
/// The memory of a document that is being sent, of that for large responses.
const BYTES: usize = 4 << 20;
/// Statements that are read at once.
const PAGE: i64 = 200;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/vulnerabilities/openvex",
        get_with(
            openvex,
            operation_failing(
                &[404, 503],
                "vulnerabilities.getOpenvex",
                "tenant-vulnerabilities",
                "All statements as a document of OpenVEX",
            ),
        ),
    )
}

/// A document that is being sent.
struct Document {
    core: Core,
    scope: Scope,
    /// The members before the statements, until they are sent.
    head: Option<String>,
    /// The last statement that was sent; None at the end.
    after: Option<(String, ReleaseUuid)>,
    has_statements: bool,
    _held: Held,
}

impl Document {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if let Some(head) = self.head.take() {
            return Ok(Some(Bytes::from(head)));
        }
        let Some((vulnerability_id, release_uuid)) = self.after.take() else {
            return Ok(None);
        };
        let mut conn = self.core.db.read().await?;
        let after = (vulnerability_id.as_str(), release_uuid);
        let page = store::after(&mut conn, &self.scope, after, PAGE).await?;
        let of: Vec<ReleaseUuid> = page
            .iter()
            .filter_map(|statement| statement.release_uuid)
            .collect();
        let named = releases::named(&mut conn, &self.scope, &of).await?;
        drop(conn);
        let mut text = String::new();
        for one in &page {
            let purl = one.release_uuid.and_then(|release| named.get(&release));
            let purl = purl.map(|release| {
                let (name, version) = (encoded(&release.app_name), encoded(&release.version));
                format!("pkg:generic/{name}@{version}")
            });
            text.push_str(if self.has_statements { "," } else { "" });
            text.push_str(&statement(one, purl, &self.scope).to_string());
            self.has_statements = true;
        }
        let is_full = i64::try_from(page.len()).unwrap_or(i64::MAX) >= PAGE;
        match page.into_iter().next_back().filter(|_| is_full) {
            Some(last) => {
                let release = last.release_uuid.unwrap_or(ReleaseUuid(Uuid::nil()));
                self.after = Some((last.vulnerability_id, release));
            }
            None => text.push_str("]}"),
        }
        Ok(Some(Bytes::from(text)))
    }
}

/// The members before the statements, and the beginning of those.
fn head(tenant: &str, now: &str) -> Result<String> {
    let head = json!({
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": format!("urn:uuid:{}", Uuid::new_v4()),
        "author": tenant,
        "timestamp": now,
        "version": 1,
        "tooling": concat!("hub-cloud ", env!("CARGO_PKG_VERSION")),
    });
    let text = head.to_string();
    let members = text
        .strip_suffix('}')
        .ok_or_else(|| Error::internal("the head of a document is no object"))?;
    Ok(format!("{members},\"statements\":["))
}

/// A statement about a release, or about all that the tenant has.
fn statement(statement: &Statement, purl: Option<String>, scope: &Scope) -> Value {
    let about = match statement.release_uuid {
        Some(release) => format!("urn:uuid:{release}"),
        None => format!("urn:uuid:{}", scope.tenant_uuid()),
    };
    let product = match purl {
        Some(purl) => json!({"@id": about, "identifiers": {"purl": purl}}),
        None => json!({"@id": about}),
    };
    let mut written = json!({
        "vulnerability": {"name": statement.vulnerability_id},
        "timestamp": statement.updated_at,
        "products": [product],
        "status": statement.status,
    });
    if let Some(members) = written.as_object_mut() {
        let texts = [
            (
                "justification",
                statement.justification.map(|why| why.name()),
            ),
            ("impact_statement", statement.impact.as_deref()),
            ("action_statement", statement.action.as_deref()),
        ];
        let texts = texts.into_iter().filter_map(|(name, text)| {
            let text = text?;
            Some((name.to_owned(), json!(text)))
        });
        members.extend(texts);
    }
    written
}

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        let parts = stream::try_unfold(self, |mut document| async move {
            let part = document.next().await?;
            Ok::<_, Error>(part.map(|part| (part, document)))
        });
        attachment_in_parts(JSON, "openvex.json", parts)
    }
}

impl OperationOutput for Document {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "A document of OpenVEX 0.2.0.";
        let schema = json!({"type": "object", "description": description});
        vec![(Some(200), attachment_response(JSON, description, schema))]
    }
}

async fn openvex(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
) -> Result<Document> {
    let scope = auth.scope;
    let holder = Holder {
        group: scope.tenant_uuid().0,
        member: None,
    };
    let held = hold_answer(&core, holder, BYTES)?;
    let mut conn = core.db.read().await?;
    let tenant = tenants::name(&mut conn, scope.tenant_uuid()).await?;
    let first = store::after(&mut conn, &scope, ("", ReleaseUuid(Uuid::nil())), 1).await?;
    drop(conn);
    if first.is_empty() {
        return Err(Error::new(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            "nothing has been stated yet, and a document of OpenVEX has a statement",
        ));
    }
    let tenant = tenant.filter(|name| !name.trim().is_empty());
    let tenant = tenant.unwrap_or_else(|| scope.tenant_uuid().to_string());
    let now = core.clock.now().to_string();
    Ok(Document {
        head: Some(head(&tenant, &now)?),
        core,
        scope,
        after: Some((String::new(), ReleaseUuid(Uuid::nil()))),
        has_statements: false,
        _held: held,
    })
}

#[cfg(test)]
mod tests {
    use hub_advisories::vex;
    use hub_protocol::{TenantUuid, Timestamp};

    use super::super::statements::{VexJustification, VexStatus};
    use super::*;

    #[test]
    fn document_is_read_by_readers_of_openvex() {
        let scope = Scope::system("test", TenantUuid::new());
        let affected = Statement {
            vulnerability_id: "CVE-2024-1".to_owned(),
            release_uuid: None,
            status: VexStatus::Affected,
            justification: None,
            impact: None,
            action: Some("Update \"it\".".to_owned()),
            author: "API_KEY:7".to_owned(),
            updated_at: Timestamp::from_micros(0),
        };
        let not_affected = Statement {
            release_uuid: Some(ReleaseUuid::new()),
            status: VexStatus::NotAffected,
            justification: Some(VexJustification::ComponentNotPresent),
            action: None,
            ..affected.clone()
        };
        let purl = Some("pkg:generic/logger@1.0.0".to_owned());
        let text = format!(
            "{}{},{}]}}",
            head("A tenant", "2026-01-31T08:00:00.000000Z").expect("a head"),
            statement(&affected, None, &scope),
            statement(&not_affected, purl, &scope),
        );
        let document = vex::read(text.as_bytes()).expect("a document");
        assert_eq!(document.author, "A tenant");
        let [one, other] = document.statements.as_slice() else {
            panic!("{document:?}");
        };
        assert_eq!(one.action.as_deref(), Some("Update \"it\"."));
        let [product] = other.products.as_slice() else {
            panic!("{other:?}");
        };
        assert_eq!(product.name, "pkg:generic/logger@1.0.0");
        assert_eq!(other.status, vex::Status::NotAffected);
    }
}
