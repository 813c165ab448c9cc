//! Texts with places that an event fills: `hubs/{{hubUuid}}/{{address}}`.

use std::sync::Arc;

use hub_steps::{self as steps, Event};

#[derive(Clone, Debug)]
pub struct Template {
    text: String,
    compiled: Arc<steps::Template>,
}

impl Template {
    pub fn compile(text: &str) -> Result<Self, String> {
        let compiled = steps::Template::compile(text).map_err(|problem| problem.message)?;
        Ok(Self {
            text: text.to_owned(),
            compiled: Arc::new(compiled),
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn with_places_filled(&self, filling: &str) -> String {
        self.compiled.filled(filling)
    }

    pub fn render(&self, event: &Event) -> Result<String, String> {
        self.compiled.render(event)
    }
}
