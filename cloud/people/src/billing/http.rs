//! `/tenant/billing`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::transform::TransformOperation;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::http::answer::Answer;
use hub_core::http::extract::Query;
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, Member, permission as perm};
use hub_protocol::{TenantUuid, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Billing, Subject};
use crate::Parts;

const TAG: &str = "tenant-billing";
const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;
/// The most bytes of a cursor: a time in any form and precision.
const MAX_CURSOR_BYTES: usize = 64;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/billing/balance",
            get_with(
                balance,
                operation_failing(
                    &[502, 504],
                    "billing.getBalance",
                    TAG,
                    "The balance of the tenant",
                ),
            ),
        )
        .api_route(
            "/tenant/billing/entitlement",
            get_with(
                entitlement,
                operation_failing(
                    &[502, 504],
                    "billing.getEntitlement",
                    TAG,
                    "What the tenant may use",
                ),
            ),
        )
        .api_route(
            "/tenant/billing/transactions",
            get_with(
                transactions,
                operation_failing(
                    &[502, 504],
                    "billing.listTransactions",
                    TAG,
                    "The tenant's transactions, newest first",
                ),
            ),
        )
        .api_route(
            "/tenant/billing/charge-settings",
            get_with(
                charge_settings,
                deprecated(
                    "billing.getChargeSettings",
                    "Where charge settings are kept",
                ),
            )
            .put_with(
                put_charge_settings,
                deprecated(
                    "billing.putChargeSettings",
                    "Where charge settings are kept; changes nothing",
                ),
            ),
        )
}

/// As [`operation`], for an operation that is deprecated.
fn deprecated(
    id: &'static str,
    summary: &'static str,
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |documented| {
        let mut documented = operation(id, TAG, summary)(documented);
        documented.inner_mut().deprecated = true;
        documented
    }
}

/// An object as the billing service answered it.
#[derive(Serialize)]
#[serde(transparent)]
struct Passed(Box<RawValue>);

impl JsonSchema for Passed {
    fn schema_name() -> Cow<'static, str> {
        "BillingAnswer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "What the billing service answers, as it is.",
            "additionalProperties": {"description": "Whatever the billing service says."},
        })
    }
}

async fn balance(
    auth: Authorized<perm::BillingRead>,
    State(billing): State<Billing>,
) -> Result<Answer<Passed>> {
    Ok(Answer(Passed(
        billing.ask(&auth.scope, Subject::Balance, &[]).await?,
    )))
}

/// The optional tenant, which must be that of the request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EntitlementQuery {
    /// The tenant of the request; another one is refused.
    #[allow(
        dead_code,
        reason = "the access extractor compares it with the tenant of the request"
    )]
    tenant_uuid: Option<TenantUuid>,
}

async fn entitlement(
    auth: Authorized<perm::BillingRead>,
    State(billing): State<Billing>,
    Query(_): Query<EntitlementQuery>,
) -> Result<Answer<Passed>> {
    Ok(Answer(Passed(
        billing.ask(&auth.scope, Subject::Entitlement, &[]).await?,
    )))
}

/// The requested transactions.
#[derive(Debug, Deserialize, JsonSchema)]
struct TransactionsQuery {
    /// `createdAt` of the last transaction that was received; the newest ones when absent.
    #[schemars(with = "Option<Timestamp>")]
    cursor: Option<String>,
    /// Transactions in an answer: 50 when absent.
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: Option<i64>,
}

async fn transactions(
    auth: Authorized<perm::BillingRead>,
    State(billing): State<Billing>,
    Query(TransactionsQuery { cursor, limit }): Query<TransactionsQuery>,
) -> Result<Answer<Passed>> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::field(
            "limit",
            format!("must be from 1 to {MAX_LIMIT}"),
        ));
    }
    let mut query = vec![("limit", limit.to_string())];
    if let Some(cursor) = cursor {
        // The cursor is passed on unchanged, since it may be more precise than a time is here.
        if cursor.len() > MAX_CURSOR_BYTES || cursor.parse::<Timestamp>().is_err() {
            return Err(Error::field(
                "cursor",
                "must be a time (RFC 3339), such as 2026-01-31T09:30:00Z",
            ));
        }
        query.push(("cursor", cursor));
    }
    Ok(Answer(Passed(
        billing
            .ask(&auth.scope, Subject::Transactions, &query)
            .await?,
    )))
}

/// The storage of charge settings: `status` and `message`.
#[derive(Serialize, JsonSchema)]
struct ChargeSettings(BTreeMap<&'static str, &'static str>);

fn moved(billing: &Billing) -> Result<Answer<ChargeSettings>> {
    billing.configured()?;
    let message =
        "charge settings are kept by the billing service; nothing is stored or changed here";
    Ok(Answer(ChargeSettings(BTreeMap::from([
        ("status", "MOVED"),
        ("message", message),
    ]))))
}

async fn charge_settings(
    _: Authorized<perm::BillingRead>,
    State(billing): State<Billing>,
) -> Result<Answer<ChargeSettings>> {
    moved(&billing)
}

async fn put_charge_settings(
    _: Member<perm::BillingManage>,
    State(billing): State<Billing>,
) -> Result<Answer<ChargeSettings>> {
    moved(&billing)
}
