//! What is stored of a person, for that person: one line of JSON for each thing. It is read page by
//! page while it is sent, so that neither its size nor a slow receiver costs memory or holds a
//! transaction. What comes with later subjects is one more [`Section`].

pub mod http;

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use hub_base::budget::Held;
use hub_base::db::Slice;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_fleet::consent;
use hub_identity::authz::UserScope;
use hub_people::{accounts, supplier_links, tenants};
use serde::Serialize;

use crate::end_users::{OwnDevice, export};
use crate::{device_commands, mandates, notices};

/// Rows that are read at once.
const PAGE: i64 = 100;
/// Events that are read at once.
const EVENTS: i64 = 500;

/// The next part to send.
enum Section {
    Profile,
    Memberships,
    Hubs { offset: i64 },
    Devices { offset: i64 },
    SensorData { after: i64 },
    Consents { after: i64 },
    Mandates { offset: i64 },
    Links,
    Commands { offset: i64 },
    Notifications { offset: i64 },
    End,
}

/// An export that is being sent.
struct Export {
    core: Core,
    scope: UserScope,
    section: Option<Section>,
    /// Devices whose values are still to be sent.
    devices: VecDeque<OwnDevice>,
    lines: u64,
    /// The memory that limits the number of concurrent exports.
    _held: Held,
}

/// One line of an export.
#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    data: &'a T,
}

#[derive(Serialize)]
struct End {
    lines: u64,
}

impl Export {
    /// The next lines; None at the end. They may be empty.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(section) = self.section.take() else {
            return Ok(None);
        };
        let (core, scope) = (self.core.clone(), self.scope.clone());
        let (lines, next) = match section {
            Section::Profile => {
                let profile =
                    accounts::profile::exported(&mut core.db.read().await?, scope.user_uuid())
                        .await?;
                let profile = profile.ok_or_else(|| Error::not_found("account"))?;
                (
                    self.lines("profile", &[profile])?,
                    Some(Section::Memberships),
                )
            }
            Section::Memberships => {
                let memberships =
                    tenants::memberships(&mut core.db.read().await?, scope.user_uuid()).await?;
                (
                    self.lines("membership", &memberships)?,
                    Some(Section::Hubs { offset: 0 }),
                )
            }
            Section::Hubs { offset } => {
                let hubs = export::hubs(&core, &scope, Slice { size: PAGE, offset }).await?;
                let next = match is_full(&hubs) {
                    true => Section::Hubs {
                        offset: offset + PAGE,
                    },
                    false => Section::Devices { offset: 0 },
                };
                (self.lines("hub", &hubs)?, Some(next))
            }
            Section::Devices { offset } => {
                let (own, shown) =
                    export::devices(&core, &scope, Slice { size: PAGE, offset }).await?;
                let next = match is_full(&own) {
                    true => Section::Devices {
                        offset: offset + PAGE,
                    },
                    false => Section::SensorData { after: 0 },
                };
                self.devices.extend(own);
                (self.lines("device", &shown)?, Some(next))
            }
            Section::SensorData { after } => match self.devices.front().copied() {
                None => (Bytes::new(), Some(Section::Consents { after: 0 })),
                Some(device) => {
                    let values = export::values(&core, &scope, &device, after, EVENTS).await?;
                    if values.last_id.is_none() {
                        self.devices.pop_front();
                    }
                    let items: Vec<_> = values
                        .items
                        .iter()
                        .map(|item| OfDevice::new(&device, item))
                        .collect();
                    let after = values.last_id.unwrap_or(0);
                    (
                        self.lines("sensorData", &items)?,
                        Some(Section::SensorData { after }),
                    )
                }
            },
            Section::Consents { after } => {
                let mut conn = core.db.read().await?;
                let consents =
                    consent::http::exported(&mut conn, scope.user_uuid(), after, PAGE).await?;
                drop(conn);
                let next = match consents.last() {
                    Some((last, _)) if is_full(&consents) => Section::Consents { after: *last },
                    _ => Section::Mandates { offset: 0 },
                };
                let consents: Vec<_> = consents.into_iter().map(|(_, consent)| consent).collect();
                (self.lines("consent", &consents)?, Some(next))
            }
            Section::Mandates { offset } => {
                let slice = Slice { size: PAGE, offset };
                let mandates = mandates::http::exported(&core, &scope, slice).await?;
                let next = match is_full(&mandates) {
                    true => Section::Mandates {
                        offset: offset + PAGE,
                    },
                    false => Section::Links,
                };
                (self.lines("mandate", &mandates)?, Some(next))
            }
            Section::Links => {
                let now = core.clock.now();
                let mut conn = core.db.read().await?;
                let links = supplier_links::http::exported(&mut conn, &scope, now).await?;
                drop(conn);
                (
                    self.lines("supplierLink", &links)?,
                    Some(Section::Commands { offset: 0 }),
                )
            }
            Section::Commands { offset } => {
                let slice = Slice { size: PAGE, offset };
                let author_uuid = scope.user_uuid().0;
                let commands =
                    device_commands::exported(&mut core.db.read().await?, author_uuid, slice)
                        .await?;
                let next = match is_full(&commands) {
                    true => Section::Commands {
                        offset: offset + PAGE,
                    },
                    false => Section::Notifications { offset: 0 },
                };
                (self.lines("deviceCommand", &commands)?, Some(next))
            }
            Section::Notifications { offset } => {
                let notices =
                    notices::http::exported(&core, &scope, Slice { size: PAGE, offset }).await?;
                let next = match is_full(&notices) {
                    true => Section::Notifications {
                        offset: offset + PAGE,
                    },
                    false => Section::End,
                };
                (self.lines("notification", &notices)?, Some(next))
            }
            Section::End => {
                let end = End { lines: self.lines };
                (self.lines("end", &[end])?, None)
            }
        };
        self.section = next;
        Ok(Some(lines))
    }

    fn lines<T: Serialize>(&mut self, kind: &'static str, items: &[T]) -> Result<Bytes> {
        let mut text = BytesMut::new();
        for data in items {
            serde_json::to_writer((&mut text).writer(), &Line { kind, data })
                .map_err(Error::internal)?;
            text.put_u8(b'\n');
            self.lines += 1;
        }
        Ok(text.freeze())
    }
}

/// A value, and whose it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfDevice<'a, T> {
    device_instance_id: i64,
    #[serde(flatten)]
    item: &'a T,
}

impl<'a, T> OfDevice<'a, T> {
    const fn new(device: &OwnDevice, item: &'a T) -> Self {
        Self {
            device_instance_id: device.device_instance_id,
            item,
        }
    }
}

fn is_full<T>(page: &[T]) -> bool {
    i64::try_from(page.len()).unwrap_or(i64::MAX) >= PAGE
}
