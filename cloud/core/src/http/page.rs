//! Lists in pages, in both forms that clients know: `page` and `size` from 1, answered with a list
//! and headers, and `page`, `size` and `sort` from 0, answered with a page object. Every list is
//! bounded: a page has at most 100 items, and no page starts beyond [`MAX_OFFSET`].

use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hub_base::budget::{Held, Holder};
use hub_base::db::{Direction, MAX_COUNT, Slice};
use hub_base::error::{Error, Result};
use hub_protocol::{Data, TenantUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{hold_answer, json_response};
use super::describe::headers;
use super::extract::Query;
use crate::Core;

pub const DEFAULT_SIZE: i64 = 20;
pub const MAX_SIZE: i64 = 100;
/// No page starts beyond what is counted.
pub const MAX_OFFSET: i64 = MAX_COUNT;
/// Documents on one page.
const MAX_PAGE_BYTES: i64 = 8 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
struct RawPage {
    /// The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000
    /// at the latest.
    #[schemars(range(min = 0, max = MAX_OFFSET + 1))]
    page: Option<i64>,
    /// Items on a page: 20 when absent, at most 100; more is read as 100.
    #[schemars(range(min = 1))]
    size: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RawPageable {
    /// The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the
    /// latest, of the audit log at 5,000.
    #[schemars(range(min = 0, max = MAX_OFFSET))]
    page: Option<i64>,
    /// Items on a page: 20 when absent, at most 100; more is read as 100.
    #[schemars(range(min = 1))]
    size: Option<i64>,
    /// The one field that the list is sorted by, and the direction: `createdAt,asc` or
    /// `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for
    /// lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries.
    #[schemars(regex(pattern = "^[A-Za-z]+(,(asc|desc))?$"))]
    sort: Option<String>,
}

fn checked_size(name: &str, size: Option<i64>) -> Result<i64> {
    match size.unwrap_or(DEFAULT_SIZE) {
        ..=0 => Err(Error::field(name, "must be 1 or more")),
        size => Ok(size.min(MAX_SIZE)),
    }
}

fn checked_offset(page_index: i64, size: i64) -> Result<i64> {
    match page_index.checked_mul(size) {
        Some(offset @ 0..=MAX_OFFSET) => Ok(offset),
        Some(..=-1) => Err(Error::field("page", "must not be negative")),
        _ => Err(Error::field(
            "page",
            format!(
                "a page starts at record {MAX_OFFSET} at the latest; if the list has filters, use them to narrow it"
            ),
        )),
    }
}

/// The `page`/`size` form, counted from 1.
#[derive(Clone, Debug)]
pub struct Page {
    pub number: i64,
    pub size: i64,
    pub offset: i64,
    /// Path and query of the request, for `Link` headers.
    uri: axum::http::Uri,
    /// The name of the parameter for the size.
    size_name: &'static str,
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let Query(raw) = Query::<RawPage>::from_request_parts(parts, state).await?;
        Self::new(raw.page, raw.size, "size", parts)
    }
}

impl OperationInput for Page {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Query::<RawPage>::operation_input(ctx, operation);
    }
}

/// As [`Page`], with the size in a parameter `limit`.
#[derive(Clone, Debug)]
pub struct LimitedPage(pub Page);

#[derive(Debug, Deserialize, JsonSchema)]
struct RawLimitedPage {
    /// The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000
    /// at the latest.
    #[schemars(range(min = 0, max = MAX_OFFSET + 1))]
    page: Option<i64>,
    /// Items on a page: 20 when absent, at most 100; more is read as 100.
    #[schemars(range(min = 1))]
    limit: Option<i64>,
}

impl<S: Send + Sync> FromRequestParts<S> for LimitedPage {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let Query(raw) = Query::<RawLimitedPage>::from_request_parts(parts, state).await?;
        Page::new(raw.page, raw.limit, "limit", parts).map(Self)
    }
}

impl OperationInput for LimitedPage {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Query::<RawLimitedPage>::operation_input(ctx, operation);
    }
}

impl Page {
    fn new(
        number: Option<i64>,
        size: Option<i64>,
        size_name: &'static str,
        parts: &Parts,
    ) -> Result<Self> {
        let size = checked_size(size_name, size)?;
        let number = match number.unwrap_or(1) {
            ..=-1 => return Err(Error::field("page", "must not be negative")),
            0 => 1,
            number => number,
        };
        let offset = checked_offset(number - 1, size)?;
        Ok(Self {
            number,
            size,
            offset,
            uri: parts.uri.clone(),
            size_name,
        })
    }

    pub const fn slice(&self) -> Slice {
        Slice {
            size: self.size,
            offset: self.offset,
        }
    }

    /// Memory for a page of a tenant's documents, which have so many bytes as they are stored.
    /// More than [`MAX_PAGE_BYTES`] are refused.
    pub fn hold(&self, core: &Core, tenant: TenantUuid, bytes: i64, what: &str) -> Result<Held> {
        if bytes > MAX_PAGE_BYTES {
            let mebibytes = MAX_PAGE_BYTES / (1024 * 1024);
            let message = format!(
                "the {what} of this page have more than {mebibytes} MiB; ask for fewer at a time"
            );
            return Err(Error::field("size", message));
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let holder = Holder {
            group: tenant.0,
            member: None,
        };
        hold_answer(core, holder, bytes.saturating_mul(2))
    }

    /// The response: the items of this page, and the number of all items.
    pub fn listed<T>(&self, items: Vec<T>, total: i64) -> Listed<T> {
        let last = ((total + self.size - 1) / self.size).max(1);
        let mut links = Vec::new();
        let mut link = |number: i64, rel: &str| {
            links.push(format!("<{}>; rel=\"{rel}\"", self.uri_of(number)))
        };
        link(1, "first");
        if self.number > 1 {
            link((self.number - 1).min(last), "prev");
        }
        if self.number < last {
            link(self.number + 1, "next");
        }
        link(last, "last");
        Listed {
            items,
            total,
            link: links.join(", "),
        }
    }

    /// The response of a list that has only one page.
    pub fn listed_whole<T>(&self, items: Vec<T>) -> Listed<T> {
        let total = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let uri = self.uri_of(1);
        Listed {
            items,
            total,
            link: format!("<{uri}>; rel=\"first\", <{uri}>; rel=\"last\""),
        }
    }

    fn uri_of(&self, number: i64) -> String {
        let others = self.uri.query().unwrap_or_default().split('&');
        let mut query: Vec<String> = others
            .filter(|pair| {
                !pair.is_empty()
                    && !matches!(pair.split('=').next(), Some(name) if name == "page" || name == self.size_name)
            })
            .map(str::to_owned)
            .collect();
        query.push(format!("page={number}"));
        query.push(format!("{}={}", self.size_name, self.size));
        format!("{}?{}", self.uri.path(), query.join("&"))
    }
}

/// A list with `X-Total-Count` and `Link` (RFC 8288). The count is exact up to 100,000 and stays at
/// that number beyond.
pub struct Listed<T> {
    items: Vec<T>,
    total: i64,
    link: String,
}

impl<T: Serialize> IntoResponse for Listed<T> {
    fn into_response(self) -> Response {
        let mut response = axum::Json(Data { data: self.items }).into_response();
        let headers = response.headers_mut();
        headers.insert("x-total-count", HeaderValue::from(self.total));
        if let Ok(link) = HeaderValue::from_str(&self.link) {
            headers.insert(header::LINK, link);
        }
        response
    }
}

impl<T: JsonSchema> OperationOutput for Listed<T> {
    type Inner = T;
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages.";
        let response = json_response::<Data<Vec<T>>>(ctx, description);
        vec![(
            Some(200),
            ApiResponse {
                headers: headers(&["X-Total-Count", "Link"]),
                ..response
            },
        )]
    }
}

/// The `page`/`size`/`sort` form, counted from 0.
#[derive(Clone, Debug)]
pub struct Pageable {
    pub number: i64,
    pub size: i64,
    pub offset: i64,
    sort: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Pageable {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let Query(raw) = Query::<RawPageable>::from_request_parts(parts, state).await?;
        let size = checked_size("size", raw.size)?;
        let number = raw.page.unwrap_or(0);
        let offset = checked_offset(number, size)?;
        Ok(Self {
            number,
            size,
            offset,
            sort: raw.sort,
        })
    }
}

impl OperationInput for Pageable {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Query::<RawPageable>::operation_input(ctx, operation);
    }
}

impl Pageable {
    pub const fn slice(&self) -> Slice {
        Slice {
            size: self.size,
            offset: self.offset,
        }
    }

    /// The requested direction, for a list that can only be sorted by `field`.
    pub fn direction(&self, field: &str, default: Direction) -> Result<Direction> {
        let Some(sort) = self.sort.as_deref().filter(|sort| !sort.is_empty()) else {
            return Ok(default);
        };
        let (name, direction) = sort.split_once(',').unwrap_or((sort, "asc"));
        match (name == field, direction) {
            (true, "asc") => Ok(Direction::Ascending),
            (true, "desc") => Ok(Direction::Descending),
            _ => Err(Error::field(
                "sort",
                format!("must be `{field},asc` or `{field},desc`"),
            )),
        }
    }

    pub fn page_of<T>(&self, content: Vec<T>, total_elements: i64) -> PageOf<T> {
        let total_pages = (total_elements + self.size - 1) / self.size;
        PageOf {
            content,
            page: self.number,
            size: self.size,
            total_elements,
            total_pages,
            first: self.number == 0,
            last: self.number + 1 >= total_pages,
        }
    }
}

/// One page of records.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Page{T}")]
pub struct PageOf<T> {
    /// The records of this page.
    #[schemars(length(max = 100))]
    pub content: Vec<T>,
    /// The number of this page, from 0.
    #[schemars(range(min = 0))]
    pub page: i64,
    /// The most records of a page.
    #[schemars(range(min = 1, max = 100))]
    pub size: i64,
    /// The number of records: exact up to 100,000, of the audit log up to 5,000, and that number
    /// beyond.
    #[schemars(range(min = 0))]
    pub total_elements: i64,
    /// The number of pages.
    #[schemars(range(min = 0))]
    pub total_pages: i64,
    /// Whether this is the first page.
    pub first: bool,
    /// Whether no page follows.
    pub last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_beyond_the_limit_is_refused() {
        assert_eq!(checked_offset(1000, 100).expect("an offset"), MAX_OFFSET);
        for page_index in [1001, i64::MAX] {
            let error = checked_offset(page_index, 100)
                .expect_err("a refusal")
                .to_string();
            assert!(
                error.contains("`page`") && error.contains("100000"),
                "{error}"
            );
            assert!(!error.contains("`from`"), "not every list has it: {error}");
        }
        assert!(
            checked_offset(-1, 100)
                .expect_err("a refusal")
                .to_string()
                .contains("negative")
        );
    }
}
