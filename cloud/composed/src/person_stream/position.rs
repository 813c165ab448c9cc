//! Where a reader is in the events of each supplier of a person: the id of an event of the stream.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hub_protocol::TenantUuid;
use uuid::Uuid;

/// The last event that was sent, by supplier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position(pub BTreeMap<TenantUuid, i64>);

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (tenant_uuid, id)) in self.0.iter().enumerate() {
            let separator = if at > 0 { "." } else { "" };
            write!(formatter, "{separator}{}-{id}", tenant_uuid.0.simple())?;
        }
        Ok(())
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let of_supplier = |part: &str| {
            let (tenant_uuid, id) = part.split_once('-').ok_or(())?;
            let tenant_uuid = Uuid::try_parse(tenant_uuid).map_err(drop)?;
            let id: i64 = id.parse().map_err(drop)?;
            Ok((TenantUuid(tenant_uuid), id))
        };
        text.split('.')
            .map(of_supplier)
            .collect::<Result<_, ()>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let suppliers = [
            (TenantUuid::new(), 1_785_312_000_123_456),
            (TenantUuid::new(), 7),
        ];
        let position = Position(suppliers.into());
        assert_eq!(position.to_string().parse(), Ok(position));
        for text in [
            "",
            "7",
            "2026-01-31T09:30:00.123456Z",
            "a-7",
            "-",
            "..",
            &"-7".repeat(999),
        ] {
            assert_eq!(text.parse::<Position>(), Err(()), "{text}");
        }
    }
}
