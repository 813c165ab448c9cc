//! The library of device models: `library/<brand>/<model>.json`, compiled in. A model file says how
//! a device is recognised and read, and has frames of it with what they say.

mod model;
mod reading;
mod test;
mod whole;

use std::sync::LazyLock;

pub use model::{Metric, Model, Protocol};
pub use reading::{Reading, read, recogniser};
pub use test::{Difference, ModelTest, OwnedFrame};
pub use whole::whole_library;

/// Keys (`<brand>/<model>`) and texts of all model files, sorted by key.
pub static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let parse =
        |(key, text): &(&str, &str)| Model::parse(key, &serde_json::from_str(text).ok()?).ok();
    FILES.iter().filter_map(parse).collect()
});

/// All models, sorted by key. Tests see to it that every file is one.
pub fn library() -> &'static [Model] {
    &MODELS
}

/// The model of a key such as `inkbird/ibs-th`.
pub fn model(key: &str) -> Option<&'static Model> {
    let models = library();
    models
        .binary_search_by(|model| model.key.as_str().cmp(key))
        .ok()
        .and_then(|at| models.get(at))
}
