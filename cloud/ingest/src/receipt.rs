//! What an upload is answered: a receipt, or why it was not stored.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub_base::error::Error;
use hub_core::http::describe::{may_fail, rate_limit_headers};
use hub_protocol::{HubUuid, Timestamp};

/// When to ask again after a full quota of stored bytes. Retention lowers it by and by.
const STORED_BYTES_RETRY_SECS: u64 = 600;

/// The result of an upload.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub answer: String,
    /// An earlier request stored the upload; nothing was written now.
    pub duplicate: bool,
    /// The owner of the hub has not consented to it; nothing was written.
    pub withheld: bool,
    pub rate_limit: RateLimit,
}

/// The tenant's use of its limit in the current minute.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    pub limit: i64,
    pub remaining: i64,
    /// Seconds until the minute is over.
    pub reset_secs: i64,
}

/// Why an upload was not stored. Small and copyable, since a failed commit is reported to every
/// upload of its group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    TokenNotInForce,
    RateLimited(RateLimit),
    /// The limit is shared, and the hub has used its share.
    ShareExceeded {
        rate_limit: RateLimit,
        share: i64,
        hub_uuid: HubUuid,
    },
    StoredBytes {
        used: i64,
        limit: i64,
    },
    BytesPerDay {
        limit: i64,
        /// Seconds until the day is over.
        reset_secs: i64,
    },
    /// The tenant has used half of its day, and the hub its share of the other half.
    DayShareExceeded {
        hub_uuid: HubUuid,
        share: i64,
        /// Seconds until the day is over.
        reset_secs: i64,
    },
    /// The disk is full.
    StorageFull,
    Unavailable,
    Failed,
}

impl Refusal {
    /// The quota that is full, as `PUT /platform/tenants/{tenantUuid}/limits` names it.
    pub(crate) const fn quota(self) -> Option<&'static str> {
        match self {
            Self::StoredBytes { .. } => Some("storedBytes"),
            Self::BytesPerDay { .. } | Self::DayShareExceeded { .. } => Some("bytesPerDay"),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TokenNotInForce => hub_identity::authn::invalid_token(),
            Refusal::RateLimited(rate_limit) => rate_limited(rate_limit),
            Refusal::ShareExceeded {
                rate_limit,
                share,
                hub_uuid,
            } => share_exceeded(rate_limit, share, hub_uuid),
            Refusal::StoredBytes { used, limit } => {
                let message = format!(
                    "the quota storedBytes is full: this tenant stores {used} of {limit} bytes; \
                     retention deletes old records, or ask for a higher quota"
                );
                Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "STORED_BYTES_EXCEEDED",
                    message,
                )
                .with_retry_after(STORED_BYTES_RETRY_SECS)
            }
            Refusal::BytesPerDay { limit, reset_secs } => {
                let message = format!(
                    "the quota bytesPerDay is full: this tenant has uploaded its {limit} bytes of the day; \
                     wait for the next day (UTC), or ask for a higher quota"
                );
                Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "BYTES_PER_DAY_EXCEEDED",
                    message,
                )
                .with_retry_after(reset_secs.unsigned_abs())
            }
            Refusal::DayShareExceeded {
                hub_uuid,
                share,
                reset_secs,
            } => {
                let message = format!(
                    "hub {hub_uuid} has used its share of the quota bytesPerDay, {share} bytes of the half that is left \
                     to the live hubs of this tenant; wait for the next day (UTC), or ask for a higher quota"
                );
                Self::new(StatusCode::TOO_MANY_REQUESTS, "HUB_SHARE_EXCEEDED", message)
                    .with_retry_after(reset_secs.unsigned_abs())
            }
            Refusal::StorageFull => Self::storage_full(),
            Refusal::Unavailable => Self::unavailable(
                "DATABASE_UNAVAILABLE",
                "the database is not available; try again shortly",
            ),
            Refusal::Failed => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "INTERNAL",
                "the service failed to process the request; contact support with the request id",
            ),
        }
    }
}

pub(crate) fn rate_limited(rate_limit: RateLimit) -> Error {
    let message = format!(
        "this tenant is limited to {} such uploads a minute; wait for the next minute",
        rate_limit.limit
    );
    rate_limit.of(Error::too_many_requests(
        message,
        rate_limit.reset_secs.unsigned_abs(),
    ))
}

pub(crate) fn share_exceeded(rate_limit: RateLimit, share: i64, hub_uuid: HubUuid) -> Error {
    let message = format!(
        "hub {hub_uuid} has used its share of {share} such uploads in this minute, and the tenant has none to spare; \
         wait for the next minute"
    );
    let error = Error::new(StatusCode::TOO_MANY_REQUESTS, "HUB_SHARE_EXCEEDED", message)
        .with_retry_after(rate_limit.reset_secs.unsigned_abs());
    rate_limit.of(error)
}

impl RateLimit {
    /// The error, with the limit in its headers.
    fn of(self, error: Error) -> Error {
        self.headers()
            .into_iter()
            .fold(error, |error, (name, value)| error.with_header(name, value))
    }

    const fn headers(self) -> [(&'static str, i64); 3] {
        [
            ("ratelimit-limit", self.limit),
            ("ratelimit-remaining", self.remaining),
            ("ratelimit-reset", self.reset_secs),
        ]
    }
}

/// The calendar minute, counted from 1970.
pub(crate) const fn minute_of(now: Timestamp) -> i64 {
    now.as_secs().div_euclid(60)
}

pub(crate) const fn secs_left(now: Timestamp) -> i64 {
    60 - now.as_secs().rem_euclid(60)
}

/// A response with the tenant's rate limit in its headers.
pub struct Limited<R>(pub R, pub RateLimit);

impl<R: IntoResponse> IntoResponse for Limited<R> {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        for (name, value) in self.1.headers() {
            response.headers_mut().insert(name, value.into());
        }
        response
    }
}

impl<R: aide::OperationOutput> aide::OperationOutput for Limited<R> {
    type Inner = R::Inner;
    fn inferred_responses(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) -> Vec<(Option<u16>, aide::openapi::Response)> {
        let mut responses = R::inferred_responses(ctx, operation);
        for (_, response) in &mut responses {
            response.headers.extend(rate_limit_headers::<Vec<_>>());
        }
        may_fail(operation, &[429]);
        responses
    }
}
