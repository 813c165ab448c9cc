//! Reads what definitions of several kinds have in common.

use hub_outgoing::{MAX_URL_BYTES, Outgoing};
use reqwest::Url;

use super::auth::{self, Form, ShownAuth};
use super::members::{Members, Problem};
use super::template::Template;

const MAX_TEMPLATE_BYTES: usize = 1_024;

/// A definition that is being checked.
pub struct Source<'a> {
    pub members: Members<'a>,
    pub outgoing: &'a Outgoing,
    pub is_stored: bool,
}

impl Source<'_> {
    pub fn url(&self, schemes: &[&str]) -> Result<Url, Problem> {
        let text = self.members.required("url", MAX_URL_BYTES)?;
        self.outgoing
            .check_url(text, schemes)
            .map_err(|message| self.members.problem("url", message))
    }

    /// The URL of a broker: host and port alone, but for schemes `with_path`.
    pub fn broker(&self, schemes: &[&str], with_path: &[&str]) -> Result<Url, Problem> {
        let url = self.url(schemes)?;
        if with_path.contains(&url.scheme()) {
            return Ok(url);
        }
        match matches!(url.path(), "" | "/") && url.query().is_none() {
            true => Ok(url),
            false => Err(self
                .members
                .problem("url", "must have no path and no query")),
        }
    }

    pub fn auth(&self, forms: &[&Form]) -> Result<Option<ShownAuth>, Problem> {
        self.members
            .get("auth")
            .map(|auth| auth::check(auth, forms, self.is_stored))
            .transpose()
    }

    pub fn template(
        &self,
        name: &str,
        check: fn(&str) -> Result<(), String>,
    ) -> Result<Template, Problem> {
        let text = self.members.required(name, MAX_TEMPLATE_BYTES)?;
        let template =
            Template::compile(text).map_err(|message| self.members.problem(name, message))?;
        // What an event will fill in is checked when there is one.
        check(&template.with_places_filled("x"))
            .map_err(|message| self.members.problem(name, message))?;
        Ok(template)
    }
}
