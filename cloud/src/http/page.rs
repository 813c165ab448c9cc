//! Lists in pages, in both forms clients know: `page`/`size` from 1 that answers a list with headers, and `page`/`size`/`sort` from 0
//! that answers a page object. No list is unbounded: a page has at most 100 items, and no page begins beyond [`MAX_OFFSET`].

use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hub_protocol::Data;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::json_response;
use super::extract::Query;
use crate::error::{Error, Result};

pub const DEFAULT_SIZE: i64 = 20;
pub const MAX_SIZE: i64 = 100;
/// Counting and skipping end here: further back, a client narrows the list by its filters.
pub const MAX_OFFSET: i64 = 100_000;

#[derive(Debug, Deserialize, JsonSchema)]
struct RawPage {
    /// From 1 (lists) or from 0 (page objects).
    page: Option<i64>,
    /// 1 to 100; 20 when absent; more than 100 is read as 100.
    size: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RawPageable {
    /// From 0.
    page: Option<i64>,
    /// 1 to 100; 20 when absent; more than 100 is read as 100.
    size: Option<i64>,
    /// `field,asc` or `field,desc`.
    sort: Option<String>,
}

fn checked_size(size: Option<i64>) -> Result<i64> {
    match size.unwrap_or(DEFAULT_SIZE) {
        ..=0 => Err(Error::field("size", "must be 1 or more")),
        size => Ok(size.min(MAX_SIZE)),
    }
}

fn checked_offset(page_index: i64, size: i64) -> Result<i64> {
    match page_index.checked_mul(size) {
        Some(offset @ 0..=MAX_OFFSET) => Ok(offset),
        Some(..=-1) => Err(Error::field("page", "must not be negative")),
        _ => Err(Error::field(
            "page",
            format!("pages begin at record {MAX_OFFSET} at the latest; where the list has filters, narrow it by them"),
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
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let Query(raw) = Query::<RawPage>::from_request_parts(parts, state).await?;
        let size = checked_size(raw.size)?;
        let number = match raw.page.unwrap_or(1) {
            ..=-1 => return Err(Error::field("page", "must not be negative")),
            0 => 1,
            number => number,
        };
        let offset = checked_offset(number - 1, size)?;
        Ok(Self { number, size, offset, uri: parts.uri.clone() })
    }
}

impl OperationInput for Page {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Query::<RawPage>::operation_input(ctx, operation);
    }
}

impl Page {
    /// The answer: this page's items, and how many there are in all.
    pub fn listed<T>(&self, items: Vec<T>, total: i64) -> Listed<T> {
        let last = ((total + self.size - 1) / self.size).max(1);
        let mut links = Vec::new();
        let mut link = |number: i64, rel: &str| links.push(format!("<{}>; rel=\"{rel}\"", self.uri_of(number)));
        link(1, "first");
        if self.number > 1 {
            link((self.number - 1).min(last), "prev");
        }
        if self.number < last {
            link(self.number + 1, "next");
        }
        link(last, "last");
        Listed { items, total, link: links.join(", ") }
    }

    fn uri_of(&self, number: i64) -> String {
        let others = self.uri.query().unwrap_or_default().split('&');
        let mut query: Vec<String> = others
            .filter(|pair| !pair.is_empty() && !matches!(pair.split('=').next(), Some("page" | "size")))
            .map(str::to_owned)
            .collect();
        query.push(format!("page={number}"));
        query.push(format!("size={}", self.size));
        format!("{}?{}", self.uri.path(), query.join("&"))
    }
}

/// A list with `X-Total-Count` and `Link` (RFC 8288). The count is exact up to 100,000 and stays there beyond.
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
    fn inferred_responses(ctx: &mut GenContext, _: &mut Operation) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "One page of the list; `X-Total-Count` and `Link` tell the rest.";
        vec![(Some(200), json_response::<Data<Vec<T>>>(ctx, description))]
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
        let size = checked_size(raw.size)?;
        let number = raw.page.unwrap_or(0);
        let offset = checked_offset(number, size)?;
        Ok(Self { number, size, offset, sort: raw.sort })
    }
}

impl OperationInput for Pageable {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Query::<RawPageable>::operation_input(ctx, operation);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }
}

impl Pageable {
    /// The direction asked for, where `field` is the one thing the list can be sorted by.
    pub fn direction(&self, field: &str, default: Direction) -> Result<Direction> {
        let Some(sort) = self.sort.as_deref().filter(|sort| !sort.is_empty()) else { return Ok(default) };
        let (name, direction) = sort.split_once(',').unwrap_or((sort, "asc"));
        match (name == field, direction) {
            (true, "asc") => Ok(Direction::Ascending),
            (true, "desc") => Ok(Direction::Descending),
            _ => Err(Error::field("sort", format!("must be `{field},asc` or `{field},desc`"))),
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

/// One page of records. `totalElements` is exact up to 100,000 and stays there beyond.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageOf<T> {
    pub content: Vec<T>,
    pub page: i64,
    pub size: i64,
    pub total_elements: i64,
    pub total_pages: i64,
    pub first: bool,
    pub last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_too_far_back_is_refused_in_words_that_fit_every_list() {
        assert_eq!(checked_offset(1000, 100).expect("an offset"), MAX_OFFSET);
        for page_index in [1001, i64::MAX] {
            let error = checked_offset(page_index, 100).expect_err("a refusal").to_string();
            assert!(error.contains("`page`") && error.contains("100000"), "{error}");
            assert!(!error.contains("`from`"), "not every list has it: {error}");
        }
        assert!(checked_offset(-1, 100).expect_err("a refusal").to_string().contains("negative"));
    }
}
