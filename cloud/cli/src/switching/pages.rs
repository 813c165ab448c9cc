//! Reads lists of the service page by page, and lists of the past from now backwards.

use std::collections::HashSet;

use hub_client::{Call, Client, Error};
use hub_protocol::Timestamp;
use serde_json::Value;

use crate::config::text;

/// A list that is read page by page. Records that move to the next page while it is read come once.
pub struct Pages<'a> {
    client: &'a Client,
    call: Call,
    id: &'static str,
    seen: HashSet<String>,
    page: usize,
    is_done: bool,
}

impl<'a> Pages<'a> {
    /// `id` is the member that identifies a record.
    pub fn new(client: &'a Client, call: Call, id: &'static str) -> Self {
        Self {
            client,
            call,
            id,
            seen: HashSet::new(),
            page: 1,
            is_done: false,
        }
    }

    /// The records of the next page; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Value>>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let size = self.call.operation.page_size;
        let is_paged = self.call.operation.query.contains(&"page");
        let call = match is_paged {
            true => self
                .call
                .clone()
                .query("page", Some(self.page))
                .query("size", Some(size)),
            false => self.call.clone(),
        };
        let mut records: Vec<Value> = self.client.call(call).await?;
        self.is_done = !is_paged || records.len() < size;
        self.page += 1;
        records.retain(|record| {
            let id = text(record, self.id);
            id.is_empty() || self.seen.insert(id)
        });
        Ok(Some(records))
    }
}

/// A list of what happened, latest first. It is read backwards by time, since no page may begin far
/// from the start.
pub struct Past<'a> {
    client: &'a Client,
    call: Call,
    /// The members with the time and the id of a record.
    time: &'static str,
    id: &'static str,
    /// Pages of the audit log begin with 0, and have their records in `content`.
    is_audit: bool,
    before: Timestamp,
    page: usize,
    /// The records of the last time that was read.
    last: Option<Timestamp>,
    seen: HashSet<String>,
    is_done: bool,
}

impl<'a> Past<'a> {
    /// What happened before a time.
    pub fn new(
        client: &'a Client,
        call: Call,
        (time, id): (&'static str, &'static str),
        before: Timestamp,
    ) -> Self {
        Self {
            client,
            is_audit: time == "createdAt",
            call,
            time,
            id,
            before,
            page: 0,
            last: None,
            seen: HashSet::new(),
            is_done: false,
        }
    }

    /// Further records with their times; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<(Timestamp, Value)>>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let size = self.call.operation.page_size;
        let first = usize::from(!self.is_audit);
        let call = self
            .call
            .clone()
            .query("to", Some(self.before))
            .query("page", Some(self.page + first))
            .query("size", Some(size));
        let answer: Value = self.client.call(call).await?;
        let records = match self.is_audit {
            true => answer.get("content").cloned().unwrap_or_default(),
            false => answer,
        };
        let Value::Array(records) = records else {
            return Err(Error::Unexpected(format!(
                "{} answered no list",
                self.call.operation.path
            )));
        };
        self.is_done = records.len() < size;
        let mut found = Vec::with_capacity(records.len());
        for record in records {
            let time: Timestamp = text(&record, self.time).parse().map_err(|_| {
                Error::Unexpected(format!(
                    "a record of {} has no time",
                    self.call.operation.path
                ))
            })?;
            if self.last != Some(time) {
                self.seen.clear();
                self.last = Some(time);
            }
            if self.seen.insert(text(&record, self.id)) {
                found.push((time, record));
            }
        }
        // The next page has the records of the last time again, as there may be more of them.
        match self.last.map(|last| last.plus_micros(1)) {
            Some(before) if before < self.before => {
                self.before = before;
                self.page = 0;
            }
            _ => self.page += 1,
        }
        Ok(Some(found))
    }
}
