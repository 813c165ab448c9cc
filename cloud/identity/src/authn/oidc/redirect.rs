//! What an authorization server sends a browser back with (RFC 6749, 4.1.2; RFC 9207).

/// The parameters of the redirect.
#[derive(Debug, Default)]
pub struct Parameters {
    pub state: Option<String>,
    pub code: Option<String>,
    pub iss: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

impl Parameters {
    /// Parses the query. A repeated parameter is an error (RFC 6749, 3.1), which is its name.
    pub fn read(query: &str) -> Result<Self, String> {
        let mut parameters = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "state" => &mut parameters.state,
                "code" => &mut parameters.code,
                "iss" => &mut parameters.iss,
                "error" => &mut parameters.error,
                "error_description" => &mut parameters.error_description,
                _ => continue,
            };
            if field.replace(value.into_owned()).is_some() {
                return Err(name.into_owned());
            }
        }
        Ok(parameters)
    }

    /// Whether this issuer sent the browser back. One that says that it tells so has to.
    pub fn is_from(&self, issuer: &str, sends_iss: bool) -> bool {
        match &self.iss {
            Some(iss) => *iss == issuer,
            None => !sends_iss,
        }
    }
}
