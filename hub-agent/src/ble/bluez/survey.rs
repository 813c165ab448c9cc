//! A look at what BlueZ has to offer, for `hub-agent check`. Changes nothing: scans nothing, switches nothing on.

use hub_protocol::hub::Adapter;

use super::bus::{Bus, CallError, Listener, system_address};
use super::wire::{Message, Value};
use super::world::{ADAPTER, MONITOR_MANAGER, Seen, can_listen_passively};
use super::{BLUEZ, OBJECT_MANAGER};

/// How far one gets, and what one finds.
#[derive(Debug)]
pub enum Survey {
    NoBus {
        address: String,
        reason: String,
    },
    /// Nobody has the name `org.bluez`, and nobody could be started to.
    NoDaemon,
    /// bluetoothd does not talk to this user, or not at all.
    Refused {
        denied: bool,
        reason: String,
    },
    Adapters(Vec<Surveyed>),
}

#[derive(Debug)]
pub struct Surveyed {
    pub adapter: Adapter,
    pub passive: bool,
}

/// Nothing that arrives but answers matters.
struct Deaf;

impl Listener for Deaf {
    fn batch(&mut self, _: &[Message<'_>]) {}
}

pub async fn survey() -> Survey {
    let address = system_address();
    let (bus, incoming) = match Bus::connect(&address).await {
        Ok(connected) => connected,
        Err(error) => return Survey::NoBus { address, reason: error.to_string() },
    };
    tokio::select! {
        survey = ask(&bus, &address) => survey,
        error = incoming.run(Deaf) => Survey::NoBus { address: address.clone(), reason: error.to_string() },
    }
}

async fn ask(bus: &Bus, address: &str) -> Survey {
    if let Err(error) = bus.hello().await {
        return Survey::NoBus { address: address.to_owned(), reason: error.to_string() };
    }
    let _ = bus.bus_call("StartServiceByName", "su", &[Value::Str(BLUEZ), Value::Int(0)]).await;
    if let Err(CallError::Remote { .. }) = bus.bus_call("GetNameOwner", "s", &[Value::Str(BLUEZ)]).await {
        return Survey::NoDaemon;
    }
    let listed = match bus.call(BLUEZ, "/", OBJECT_MANAGER, "GetManagedObjects", "", &[]).await {
        Ok(listed) => listed,
        Err(error) => return Survey::Refused { denied: error.is("AccessDenied"), reason: error.to_string() },
    };
    let body = listed.body();
    let objects = body.first().map(Value::entries).unwrap_or_default();
    let adapters = objects.iter().filter_map(|(path, interfaces)| {
        let mut seen = Seen::new(path.as_str()?);
        seen.change(interfaces.get(ADAPTER)?);
        let passive = interfaces.get(MONITOR_MANAGER).is_some_and(can_listen_passively);
        Some(Surveyed { adapter: seen.adapter, passive })
    });
    Survey::Adapters(adapters.collect())
}
