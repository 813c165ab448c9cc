//! What was heard of advertisers before: their names, which not every frame has, and the
//! manufacturer data of their last report. Operating systems add new data to what an advertiser has
//! sent before, so of makers who put values into the company identifier only what has changed is
//! what the device sends now.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::frame::{AddressType, Frame};
use crate::resolvable::{is_non_resolvable, is_resolvable};

/// The least number of advertisers that are remembered; the most is twice that number.
const REMEMBERED: usize = 1_024;

/// The advertisers that were heard lately.
#[derive(Debug, Default)]
pub struct Advertisers {
    latest: HashMap<u64, Report>,
    earlier: HashMap<u64, Report>,
}

/// The last report of an advertiser.
#[derive(Debug, Clone, Default)]
struct Report {
    name: Option<Box<str>>,
    /// Companies, and the hashes of their data.
    companies: Box<[(u16, u64)]>,
}

/// What is known of the advertiser of a frame from before.
#[derive(Debug, Default)]
pub struct Before {
    /// The name, of a frame without one.
    pub name: Option<Box<str>>,
    /// The companies whose data is not that of the last report; `None` without an earlier report.
    pub changed_companies: Option<Vec<u16>>,
}

impl Before {
    /// The frame with what is known of its advertiser.
    pub fn complete<'a>(&'a self, frame: &Frame<'a>) -> Frame<'a> {
        Frame {
            name: frame.name.or(self.name.as_deref()),
            changed_companies: self.changed_companies.as_deref(),
            ..*frame
        }
    }
}

impl Advertisers {
    /// Remembers a frame of an advertiser, which `key` stands for. Nothing is remembered of
    /// addresses that change.
    pub fn note(&mut self, key: u64, frame: &Frame<'_>) -> Before {
        let is_private = |address| is_resolvable(address) || is_non_resolvable(address);
        if frame.address_type == Some(AddressType::Random) && frame.address.is_some_and(is_private)
        {
            return Before::default();
        }
        let known = self.latest.get_mut(&key);
        let moved = match known {
            Some(known) => return known.follow(frame),
            None => self.earlier.remove(&key),
        };
        let is_new = moved.is_none();
        let mut report = moved.unwrap_or_default();
        let mut before = report.follow(frame);
        if is_new {
            before.changed_companies = None;
        }
        if self.latest.len() >= REMEMBERED {
            self.earlier = std::mem::take(&mut self.latest);
        }
        self.latest.insert(key, report);
        before
    }
}

impl Report {
    /// Replaces the report by that of a frame.
    fn follow(&mut self, frame: &Frame<'_>) -> Before {
        let data = frame.manufacturer_data.iter();
        let companies: Box<[(u16, u64)]> = data
            .map(|(company, data)| {
                let mut hasher = DefaultHasher::new();
                data.hash(&mut hasher);
                (*company, hasher.finish())
            })
            .collect();
        let changed = companies.iter().filter(|one| !self.companies.contains(one));
        let changed_companies = Some(changed.map(|(company, _)| *company).collect());
        // A frame without manufacturer data, such as a scan response, says nothing of it.
        if !companies.is_empty() {
            self.companies = companies;
        }
        let name = match frame.name {
            Some(name) if self.name.as_deref() == Some(name) => None,
            Some(name) => {
                self.name = Some(name.into());
                None
            }
            None => self.name.clone(),
        };
        Before {
            name,
            changed_companies,
        }
    }
}
