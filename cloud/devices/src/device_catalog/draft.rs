//! A first draft of a model from an unknown advertiser: a name, and what its advertisements look
//! like. Somebody who knows the device may refine both.

use hub_adverts::advertisement::frame_of;
use hub_adverts::company::company_name;
use hub_adverts::library::Model;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use hub_protocol::ble::Advertisement;

use super::MAX_NAME_CHARS;
use super::identifiers::{Condition, ConditionKind, MAX_VALUE_CHARS, NewIdentifier};
use crate::unknown_advertisers;

/// The first version of a new model.
#[derive(Default)]
pub struct Draft {
    pub name: Option<String>,
    pub identifiers: Vec<NewIdentifier>,
}

/// The draft of an advertiser of the inbox. A template that fits it has identifiers of its own.
pub async fn of_unknown(
    core: &Core,
    scope: &Scope,
    address: &str,
    template: Option<&Model>,
    now: Timestamp,
) -> Result<Draft> {
    let mut conn = core.db.read().await?;
    let seen = unknown_advertisers::find(&mut conn, scope, address, now).await?;
    let seen = seen.ok_or_else(|| Error::not_found("unknown advertiser"))?;
    let advertisement = seen.advertisement().unwrap_or_default();
    let name = Some(name_of(&advertisement, &seen.address));
    if let Some(template) = template {
        let frame = frame_of(&advertisement);
        let fits = frame.with(|frame| {
            template
                .identifiers
                .iter()
                .any(|identifier| identifier.matches(frame))
        });
        if !fits {
            let message = format!("does not fit what {} advertises", seen.address);
            return Err(Error::field("template", message));
        }
        return Ok(Draft {
            name,
            identifiers: Vec::new(),
        });
    }
    let conditions = conditions_of(&advertisement);
    if conditions.is_empty() {
        let message = "advertises nothing that identifies its model; create the model without it";
        return Err(Error::field("fromUnknown", message));
    }
    let identifier = NewIdentifier::checked(
        conditions,
        Some(format!("as {} advertised", seen.address)),
        None,
    )?;
    Ok(Draft {
        name,
        identifiers: vec![identifier],
    })
}

fn name_of(advertisement: &Advertisement, address: &str) -> String {
    let advertised = advertisement
        .name
        .as_deref()
        .map(|name| name.replace(char::is_control, " "));
    let advertised = advertised
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty());
    let company = advertisement
        .manufacturer_data
        .keys()
        .next()
        .and_then(|id| u16::from_str_radix(id, 16).ok());
    let name = advertised.or_else(|| {
        company
            .and_then(company_name)
            .map(|company| format!("{company} device"))
    });
    name.unwrap_or_else(|| format!("Device {address}"))
        .chars()
        .take(MAX_NAME_CHARS)
        .collect()
}

/// The conditions that distinguish its model: its manufacturer data with its length, else the
/// service that it has data of, else its name, else a service that it offers.
fn conditions_of(advertisement: &Advertisement) -> Vec<Condition> {
    let one = |kind, value: String| Condition {
        kind,
        value,
        mask: None,
    };
    if let Some((company, payload)) = advertisement.manufacturer_data.first_key_value() {
        let length = format!("{company}:{}", payload.0.len());
        return vec![
            one(ConditionKind::ManufacturerId, company.clone()),
            one(ConditionKind::PayloadLength, length),
        ];
    }
    if let Some((service, _)) = advertisement.service_data.first_key_value() {
        return vec![one(ConditionKind::ServiceDataUuid, service.clone())];
    }
    if let Some(name) = advertisement
        .name
        .as_deref()
        .filter(|name| !name.is_empty() && name.len() <= MAX_VALUE_CHARS)
    {
        return vec![one(ConditionKind::Name, name.to_owned())];
    }
    let service = advertisement.service_uuids.first();
    service
        .map(|service| one(ConditionKind::ServiceUuid, service.clone()))
        .into_iter()
        .collect()
}
