//! Who reads a stream of a person's devices, and what that reader may see at each moment: the
//! person, or the recipient of a mandate of theirs.

use futures_util::future::BoxFuture;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_devices::device_instances::ActivationStatus;
use hub_identity::authn::user::User;
use hub_identity::authz::{Scope, UserScope};
use hub_protocol::{HubUuid, TenantUuid};
use hub_streams::{Slot, Streams};
use serde_json::Value;

use crate::device_commands::{self, DeviceCommandResponse};
use crate::end_users::http::devices::summaries;
use crate::end_users::{self, OwnDevice};
use crate::mandates;
use crate::mandates::access::{LISTED_DEVICES as MANDATED_DEVICES, Quantities, Recipient};

/// Devices, and one more that shows that there are too many.
const LISTED_DEVICES: i64 = MANDATED_DEVICES;
/// The age up to which a command is sent.
const COMMAND_SECS: i64 = 600;
const MAX_COMMANDS: i64 = 100;

/// The reader of a stream.
#[derive(Clone)]
pub enum View {
    Person {
        scope: UserScope,
        user: User,
        /// The only hub whose devices are wanted.
        hub_uuid: Option<HubUuid>,
    },
    Recipient(Recipient),
}

/// Devices that the reader may see at this moment, and which of their quantities.
pub struct Visible {
    pub devices: Vec<OwnDevice>,
    /// All of them when None.
    pub quantities: Option<Quantities>,
}

impl Visible {
    pub fn allows(&self, key: &str) -> bool {
        self.quantities
            .as_ref()
            .is_none_or(|quantities| quantities.allow(key))
    }
}

/// What of a device does not change with every reception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    name: String,
    status: ActivationStatus,
    online: bool,
    hub_uuid: Option<HubUuid>,
}

/// A device as the reader sees it.
pub struct ShownDevice {
    pub device_instance_id: i64,
    pub standing: Standing,
    /// The item of the list of devices.
    pub item: Value,
}

impl View {
    /// A place for the stream.
    pub fn enter(&self, streams: &Streams) -> Result<Slot> {
        match self {
            Self::Person { user, .. } => streams.slots.enter_person(user.user_uuid),
            Self::Recipient(recipient) => streams.slots.enter_recipient(recipient.mandate_uuid),
        }
    }

    /// Some devices of the reader, newest first. Fails if the reader may read nothing any more.
    pub async fn some_devices(&self, core: &Core, conn: &mut Conn) -> Result<Visible> {
        match self {
            Self::Person {
                scope, hub_uuid, ..
            } => {
                let person = end_users::of_caller(core, conn, scope).await?;
                let devices =
                    end_users::some_devices(conn, &person, *hub_uuid, LISTED_DEVICES).await?;
                Ok(Visible {
                    devices,
                    quantities: None,
                })
            }
            Self::Recipient(recipient) => {
                let permitted = recipient.permitted(core, conn, None).await?;
                Ok(Visible {
                    devices: permitted.devices,
                    quantities: Some(permitted.quantities),
                })
            }
        }
    }

    /// Those of the given devices that are the reader's. Fails as [`Self::some_devices`].
    pub async fn those(&self, core: &Core, conn: &mut Conn, wanted: &[i64]) -> Result<Visible> {
        match self {
            Self::Person { scope, .. } => {
                let person = end_users::of_caller(core, conn, scope).await?;
                Ok(Visible {
                    devices: end_users::own_devices(conn, &person, wanted).await?,
                    quantities: None,
                })
            }
            Self::Recipient(recipient) => {
                let permitted = recipient.permitted(core, conn, Some(wanted)).await?;
                Ok(Visible {
                    devices: permitted.devices,
                    quantities: Some(permitted.quantities),
                })
            }
        }
    }

    /// Fails unless the hub that the reader asks for is theirs.
    pub async fn require_hub(&self, core: &Core, conn: &mut Conn) -> Result<()> {
        if let Self::Person {
            scope,
            hub_uuid: Some(hub_uuid),
            ..
        } = self
        {
            let person = end_users::of_caller(core, conn, scope).await?;
            end_users::require_hub(conn, &person, *hub_uuid).await?;
        }
        Ok(())
    }

    /// The devices as the reader sees them.
    pub async fn shown(
        &self,
        core: &Core,
        conn: &mut Conn,
        visible: Visible,
    ) -> Result<Vec<ShownDevice>> {
        let now = core.clock.now();
        let Visible {
            devices,
            quantities,
        } = visible;
        let Some(quantities) = quantities else {
            let summaries = summaries(conn, &devices, now).await?;
            let shown = summaries.iter().map(|device| {
                let (name, status, online, hub_uuid) = device.standing();
                Ok(ShownDevice {
                    device_instance_id: device.device_instance_id(),
                    standing: Standing {
                        name,
                        status,
                        online,
                        hub_uuid,
                    },
                    item: serde_json::to_value(device).map_err(Error::internal)?,
                })
            });
            return shown.collect();
        };
        let seen = mandates::http::shown(conn, &devices, &quantities, now).await?;
        let shown = seen.iter().map(|device| {
            let (name, status, online) = device.standing();
            Ok(ShownDevice {
                device_instance_id: device.device_instance_id(),
                standing: Standing {
                    name,
                    status,
                    online,
                    hub_uuid: None,
                },
                item: serde_json::to_value(device).map_err(Error::internal)?,
            })
        });
        shown.collect()
    }

    /// The latest commands that the reader gave; a recipient gives none.
    pub async fn commands(
        &self,
        core: &Core,
        conn: &mut Conn,
        suppliers: impl Iterator<Item = TenantUuid>,
    ) -> Result<Vec<DeviceCommandResponse>> {
        let Self::Person { user, .. } = self else {
            return Ok(Vec::new());
        };
        let now = core.clock.now();
        let since = now.plus_secs(-COMMAND_SECS);
        let mut found = Vec::new();
        for tenant_uuid in suppliers {
            let scope = Scope::of_person(user, tenant_uuid);
            let given = (user.user_uuid.0, since);
            found.extend(device_commands::given(conn, &scope, given, MAX_COMMANDS, now).await?);
        }
        Ok(found)
    }

    /// Whether the reader may still read anything, for the guard of the stream. An unavailable
    /// database ends nothing.
    pub fn is_allowed(
        &self,
        streams: &Streams,
    ) -> Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync> {
        let (view, authn) = (self.clone(), streams.authn.clone());
        Box::new(move || {
            let (view, authn) = (view.clone(), authn.clone());
            Box::pin(async move {
                let checked = match &view {
                    Self::Person { user, .. } => {
                        authn
                            .permissions
                            .require_session(&authn.core.db, user)
                            .await
                    }
                    Self::Recipient(_) => match authn.core.db.read().await {
                        Ok(mut conn) => view.those(&authn.core, &mut conn, &[]).await.map(drop),
                        Err(error) => Err(error),
                    },
                };
                checked.map_or_else(|error| error.status().is_server_error(), |()| true)
            })
        })
    }
}
