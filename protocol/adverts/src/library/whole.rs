//! The whole library as one catalog, without devices.

use std::sync::{Arc, LazyLock};

use uuid::Uuid;

use super::library;
use crate::catalog::{Catalog, Model, Models, Protocol, Reader};

static WHOLE: LazyLock<Catalog> = LazyLock::new(|| {
    let (mut models, mut identifiers, mut protocols) = (Vec::new(), Vec::new(), Vec::new());
    for (id, model) in (1_i64..).zip(library()) {
        let device_uuid = Uuid::from_u128(u128::from(id.unsigned_abs()));
        models.push(Model {
            device_uuid,
            name: model.key.clone(),
            device_protocol_id: Some(id),
            ..Model::default()
        });
        let of_model = model.identifiers.iter().cloned();
        identifiers.extend(of_model.map(|identifier| (id, device_uuid, identifier)));
        protocols.push(Protocol {
            device_protocol_id: id,
            revision: 1,
            reader: Reader::Decoder(model.protocol.clone()),
        });
    }
    Catalog::new(
        Arc::new(Models::new(models, identifiers, protocols)),
        Vec::new(),
    )
});

/// A catalog of all models, whose names are their keys.
pub fn whole_library() -> &'static Catalog {
    &WHOLE
}
