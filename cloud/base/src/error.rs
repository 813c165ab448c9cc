//! The error type of the service, and the only place that turns an error into a response. The cause
//! of a 5xx goes to the log and never into a response body.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_protocol::{FieldError, Problem};
use sqlx::error::DatabaseError;

use crate::request_id;

pub type Result<T, E = Error> = std::result::Result<T, E>;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A failed request. Its content is boxed, so that a `Result` on the hot path stays one word wide.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    code: &'static str,
    message: Cow<'static, str>,
    fields: Vec<FieldError>,
    headers: Vec<(&'static str, String)>,
    cause: Option<Cause>,
}

impl Error {
    pub fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Inner {
            status,
            code,
            message: message.into(),
            fields: Vec::new(),
            headers: Vec::new(),
            cause: None,
        }))
    }

    /// 400 that names the invalid field.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let error = FieldError {
            field: field.into(),
            message: message.into(),
        };
        Self::fields(vec![error])
    }

    /// 400 that names all invalid fields. The list must not be empty.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let message = match errors.first() {
            Some(first) => format!("`{}` is not valid: {}", first.field, first.message),
            None => "the request is not valid".to_owned(),
        };
        let mut error = Self::new(StatusCode::BAD_REQUEST, "INVALID_FIELD", message);
        error.0.fields = errors;
        error
    }

    pub fn bad_request(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub fn unauthorized(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(StatusCode::UNAUTHORIZED, code, message);
        error
            .0
            .headers
            .push(("www-authenticate", "Bearer".to_owned()));
        error
    }

    pub fn forbidden(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// 404. The error is the same for an object that does not exist and one of another tenant.
    pub fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            format!("there is no such {what}"),
        )
    }

    pub fn conflict(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub fn too_many_requests(message: impl Into<Cow<'static, str>>, retry_after_secs: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message)
            .with_retry_after(retry_after_secs)
    }

    /// 503: the request may succeed if it is repeated later.
    pub fn unavailable(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).with_retry_after(1)
    }

    /// 507: the disk of the service is full.
    pub fn storage_full() -> Self {
        let message = "the service's disk is full: what it stores can be read, and it accepts more when there is room";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, STORAGE_FULL, message)
            .with_retry_after(STORAGE_FULL_RETRY_SECS)
    }

    /// 500: a fault of the service. The cause is logged; the client gets the request id.
    pub fn internal(cause: impl Into<Cause>) -> Self {
        let mut error = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "INTERNAL",
            "the service failed to process the request; contact support with the request id",
        );
        error.0.cause = Some(cause.into());
        error
    }

    pub fn with_header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.0.headers.push((name, value.to_string()));
        self
    }

    /// The same with another status.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// The same, which names the fields concerned.
    pub fn with_fields(mut self, errors: Vec<FieldError>) -> Self {
        self.0.fields = errors;
        self
    }

    pub fn with_cause(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Sets `Retry-After`; at least one second.
    pub fn with_retry_after(self, secs: u64) -> Self {
        self.with_header("retry-after", secs.max(1))
    }

    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The fields that it names.
    pub fn field_errors(&self) -> &[FieldError] {
        &self.0.fields
    }

    pub fn code(&self) -> &'static str {
        self.0.code
    }
}

/// For logs and the command line, whose readers may see the cause and have no request id.
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.cause {
            Some(cause) if self.is_internal() => write!(f, "{cause}"),
            Some(cause) => write!(f, "{}: {cause}", self.0.message),
            None => f.write_str(&self.0.message),
        }
    }
}

impl std::error::Error for Error {}

const DATABASE_UNAVAILABLE: &str = "DATABASE_UNAVAILABLE";
const STORAGE_FULL: &str = "STORAGE_FULL";
const STORAGE_READ_ONLY: &str = "STORAGE_READ_ONLY";
const READ_ONLY: &str = "the database can only be read: its file system is mounted read-only or has failed, or its \
                         server is on standby; make it writable, and the service goes on by itself";
static READ_ONLY_SEEN: AtomicBool = AtomicBool::new(false);
/// Room is noticed within this time.
const STORAGE_FULL_RETRY_SECS: u64 = 5;

/// Marks a response, in its extensions: a write failed because the disk is full.
#[derive(Clone, Copy, Debug)]
pub struct FoundStorageFull;

impl Error {
    /// 503: nothing can be written until the database is writable again.
    pub fn read_only() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            STORAGE_READ_ONLY,
            READ_ONLY,
        )
        .with_retry_after(STORAGE_FULL_RETRY_SECS)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if is_storage_full(&error) {
            return Self::storage_full().with_cause(error);
        }
        if is_read_only(&error) {
            READ_ONLY_SEEN.store(true, Ordering::Relaxed);
            return Self::read_only().with_cause(error);
        }
        if is_unavailable(&error) {
            let message = "the database is not available; try again shortly";
            return Self::unavailable(DATABASE_UNAVAILABLE, message).with_cause(error);
        }
        Self::internal(error)
    }
}

/// Whether the disk under the database is full: PostgreSQL's 53100, SQLite's FULL, and SQLite's
/// error when its shared memory cannot grow.
fn is_storage_full(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error
        .code()
        .is_some_and(|code| ["53100", "13", "4874"].contains(&code.as_ref()))
}

/// Whether the database can only be read: SQLite's READONLY (8 in the low byte), of a file system
/// that was mounted so or has failed, and PostgreSQL's 25006, of a server that is on standby.
pub fn is_read_only(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error.code().is_some_and(|code| match code.len() {
        5 => code == "25006",
        _ => code.parse::<u32>().is_ok_and(|code| code & 0xff == 8),
    })
}

/// Whether a write of this process has found the database read-only since the last call. What was
/// opened meanwhile stays so, even when the file system can be written again.
pub fn take_read_only() -> bool {
    READ_ONLY_SEEN.swap(false, Ordering::Relaxed)
}

/// Whether the last write found the database read-only.
pub fn is_read_only_seen() -> bool {
    READ_ONLY_SEEN.load(Ordering::Relaxed)
}

/// Whether the transaction lost another server that it had used. Citus has no code for that.
fn is_lost_node(error: &dyn DatabaseError) -> bool {
    error
        .message()
        .starts_with("failure on connection marked as essential")
}

/// Whether the same statement may succeed later: the database is unreachable, full or restarting,
/// it is too busy to answer in time, or it rolled the transaction back in favour of another one.
pub fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed => true,
        sqlx::Error::WorkerCrashed => true,
        // The connection broke in the middle of a response.
        sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) if is_lost_node(error.as_ref()) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            // PostgreSQL: connection (08), a transaction that was idle or open for too long (25P03,
            // 25P04), rolled back (40), out of resources (53), a lock not given in time (55P03),
            // ended by a timeout or by an administrator (57014), shutting down or starting (57P),
            // system (58). SQLite (primary code in the low byte): BUSY 5, LOCKED 6, IOERR 10, FULL
            // 13, CANTOPEN 14.
            match code.len() {
                5 => [
                    "08", "25P03", "25P04", "40", "53", "55P03", "57014", "57P", "58",
                ]
                .iter()
                .any(|class| code.starts_with(class)),
                _ => code
                    .parse::<u32>()
                    .is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 10 | 13 | 14)),
            }
        }),
        _ => false,
    }
}

impl Error {
    /// Whether the service itself is at fault, so that a retry cannot succeed.
    pub fn is_internal(&self) -> bool {
        self.0.status == StatusCode::INTERNAL_SERVER_ERROR
    }

    /// Whether nothing else would succeed now either, because the database is unavailable.
    pub fn is_outage(&self) -> bool {
        self.0.status == StatusCode::SERVICE_UNAVAILABLE && !self.is_serialization_failure()
    }

    /// Whether the database can only be read.
    pub fn is_read_only(&self) -> bool {
        self.0.code == STORAGE_READ_ONLY
    }

    /// Whether the disk of the service is full.
    pub fn is_storage_full(&self) -> bool {
        self.0.code == STORAGE_FULL
    }

    /// Whether the database is away, can only be read or has no room. What watches it logs that
    /// for the whole service, once when it begins and once when it is over.
    pub fn is_watched(&self) -> bool {
        self.is_database_unavailable() || self.is_read_only() || self.is_storage_full()
    }

    /// Whether the database did not respond or has no resources left.
    pub fn is_database_unavailable(&self) -> bool {
        self.0.code == DATABASE_UNAVAILABLE
    }

    /// Whether the cause of this error is of type `E`.
    pub fn is_caused_by<E: std::error::Error + 'static>(&self) -> bool {
        self.0.cause.as_ref().is_some_and(|cause| cause.is::<E>())
    }

    /// Whether the transaction was rolled back in favour of another one (deadlock or serialization
    /// failure) and may be retried at once.
    pub fn is_serialization_failure(&self) -> bool {
        self.has_database_code(&["40001", "40P01"])
    }

    /// Whether the database is there, and cannot reach another server that has a part of it.
    pub fn is_node_unreachable(&self) -> bool {
        self.has_database_error(|error| {
            is_lost_node(error) || error.code().is_some_and(|code| code.starts_with("08"))
        })
    }

    /// Whether the statement gave up waiting for a lock, as PostgreSQL's `lock_timeout` has it.
    pub fn is_lock_timeout(&self) -> bool {
        self.has_database_code(&["55P03"])
    }

    fn has_database_code(&self, codes: &[&str]) -> bool {
        self.has_database_error(|error| {
            let code = error.code();
            code.is_some_and(|code| codes.contains(&code.as_ref()))
        })
    }

    fn has_database_error(&self, is_sought: impl Fn(&dyn DatabaseError) -> bool) -> bool {
        let Some(cause) = &self.0.cause else {
            return false;
        };
        matches!(cause.downcast_ref::<sqlx::Error>(), Some(sqlx::Error::Database(error))
            if is_sought(error.as_ref()))
    }
}

/// Whether a statement failed because the row already exists. SQLite does not name the constraint,
/// so the caller has to know which one it can be.
pub fn is_unique_violation(error: &Error) -> bool {
    let Some(cause) = &error.0.cause else {
        return false;
    };
    matches!(cause.downcast_ref::<sqlx::Error>(), Some(sqlx::Error::Database(error)) if error.is_unique_violation())
}

/// Bounds the log lines about refused requests: an overload must not become one of the disk too.
mod refusals {
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    const LINES: u32 = 10;
    const WINDOW: Duration = Duration::from_secs(60);

    static WRITTEN: Mutex<Option<(Instant, u32)>> = Mutex::new(None);

    /// True for the first lines of each minute.
    pub fn may_log() -> bool {
        let mut written = WRITTEN
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (began, lines) = written
            .filter(|(began, _)| began.elapsed() < WINDOW)
            .unwrap_or((Instant::now(), 0));
        *written = Some((began, lines.saturating_add(1)));
        lines < LINES
    }
}

/// The code of the error in a response.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCode(pub &'static str);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let inner = *self.0;
        let found_full = inner.code == STORAGE_FULL && inner.cause.is_some();
        if inner.status.is_server_error() {
            let cause = inner.cause.map(|cause| cause.to_string());
            match inner.status {
                // The code that detects an outage logs it once as a fault. These lines serve a
                // search for a request's id.
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE
                    if refusals::may_log() =>
                {
                    tracing::info!(
                        code = inner.code,
                        cause = cause.as_deref(),
                        "request refused, to be retried"
                    );
                }
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE => {}
                // A server that a tenant has chosen failed, which is no fault of this service.
                StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => tracing::warn!(
                    code = inner.code,
                    cause = cause.as_deref(),
                    "the server of a tenant failed"
                ),
                _ => tracing::error!(
                    code = inner.code,
                    cause = cause.as_deref(),
                    "request failed"
                ),
            }
        }
        let problem = Problem {
            message: inner.message.into_owned(),
            code: inner.code.to_owned(),
            request_id: request_id::current(),
            errors: inner.fields,
        };
        let mut response = (inner.status, axum::Json(problem)).into_response();
        for (name, value) in inner.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.extensions_mut().insert(ErrorCode(inner.code));
        if found_full {
            response.extensions_mut().insert(FoundStorageFull);
        }
        response
    }
}

impl OperationOutput for Error {
    type Inner = Problem;
    /// The extractors of an operation and its route state which failures it has. This only
    /// describes their body.
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        ctx.schema.subschema_for::<Problem>();
        Vec::new()
    }
}
