//! The firmware of this machine's Bluetooth adapters. The kernel shows it to root alone, so the
//! helper reads it.

use std::collections::BTreeMap;

use hub_agent::helper_api::Helper;
use hub_protocol::hub::Adapter;
use tokio::sync::watch;

use super::dpkg::{MAX_FIELD, is_line};
use crate::jobs::{HelperClient, HelperFailure};

/// The adapters and their firmware, which is read when the adapters change.
pub struct Firmware {
    helper: HelperClient,
    adapters: watch::Receiver<Vec<Adapter>>,
    /// The addresses, by name, of the adapters for which the helper was asked last.
    asked: BTreeMap<String, String>,
    is_answered: bool,
    /// The firmware by address.
    known: BTreeMap<String, String>,
}

impl Firmware {
    pub fn new(helper: HelperClient, adapters: watch::Receiver<Vec<Adapter>>) -> Self {
        Self {
            helper,
            adapters,
            asked: BTreeMap::new(),
            is_answered: true,
            known: BTreeMap::new(),
        }
    }

    /// The firmware of the adapters that there are, by address. While the helper does not answer,
    /// it is what was known before.
    pub async fn read(&mut self) -> BTreeMap<String, String> {
        let adapters = addresses(&self.adapters.borrow_and_update());
        if self.is_answered && adapters == self.asked {
            return self.known.clone();
        }
        self.asked = adapters;
        match self.helper.call(Helper::adapter_firmware).await {
            Ok(firmware) => {
                let of_adapter = |(name, text): (String, String)| {
                    let address = self.asked.get(&name)?.clone();
                    is_line(&text, MAX_FIELD).then_some((address, text))
                };
                self.known = firmware.into_iter().filter_map(of_adapter).collect();
                self.is_answered = true;
            }
            // A helper of an older package does not know the request.
            Err(HelperFailure::Refused(_)) => {
                self.known.clear();
                self.is_answered = true;
            }
            Err(HelperFailure::NoAnswer { message, .. }) => {
                tracing::debug!(reason = message, "the firmware of adapters is not known");
                let asked = &self.asked;
                self.known
                    .retain(|address, _| asked.values().any(|known| known == address));
                self.is_answered = false;
            }
        }
        self.known.clone()
    }

    /// Waits for an adapter of which the helper was not asked.
    pub async fn changed(&mut self) {
        let asked = &self.asked;
        let has_another = |adapters: &Vec<Adapter>| {
            addresses(adapters)
                .iter()
                .any(|(name, address)| asked.get(name) != Some(address))
        };
        if self.adapters.wait_for(has_another).await.is_err() {
            std::future::pending().await
        }
    }
}

fn addresses(adapters: &[Adapter]) -> BTreeMap<String, String> {
    let address = |adapter: &Adapter| (adapter.name.clone(), adapter.address.clone());
    adapters.iter().map(address).collect()
}
