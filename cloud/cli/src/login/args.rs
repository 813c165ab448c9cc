//! The options of `hub login`, `hub token` and `hub register`.

pub const LOGIN_HELP: &str = "\
The session is stored in $XDG_CONFIG_HOME/hub/credentials.json, readable by you only, and refreshed
automatically. Each profile is a separate login, at any service.

Examples:
  hub login --service-url https://hubs.example.com --email ben@example.com
  hub login --email ben@example.com --password-stdin < password.txt
  hub login --profile plant --service-url https://hubs.plant.example --email ben@example.com
  hub login --api-key --tenant 0198c5d1-… --service-url https://hubs.example.com
  hub login --client-id hub-cli --audience https://hubs.example.com
  hub login --client-id hub-cli --audience https://hubs.example.com --issuer https://id.example.com

Register the client at the issuer as a public client (native app, no secret) with the redirect URI
http://127.0.0.1/callback on any port, and allow the grants authorization code and refresh token.
With --issuer no service is needed: such a login serves `hub token`.";

pub const TOKEN_HELP: &str = "\
For other programs, which send it as a bearer token. A token that expires within a minute is
refreshed first.

Example:
  curl -H \"Authorization: Bearer $(hub token)\" https://hubs.example.com/tenant/tenants";

#[derive(Debug, clap::Args)]
pub struct LoginOptions {
    /// E-mail of the account
    #[arg(long, conflicts_with_all = ["api_key", "client_id"])]
    pub email: Option<String>,

    /// Read the password from the first line of standard input
    #[arg(long, conflicts_with_all = ["api_key", "client_id"])]
    pub password_stdin: bool,

    /// Code of the authenticator app, or a recovery code, for an account with a second factor
    #[arg(long, value_name = "CODE", requires = "email")]
    pub otp: Option<String>,

    /// Store an API key, typed or from the first line of standard input; requires --tenant with a
    /// uuid
    #[arg(long = "api-key", id = "api_key", conflicts_with = "client_id")]
    pub with_api_key: bool,

    /// Log in with a browser, as this client at the issuer
    #[arg(long, value_name = "ID", requires = "audience")]
    pub client_id: Option<String>,

    /// Identifier of the service at the issuer
    #[arg(long, value_name = "AUDIENCE", requires = "client_id")]
    pub audience: Option<String>,

    /// OpenID Connect issuer [default: that of the service]
    #[arg(long, value_name = "URL", requires = "client_id")]
    pub issuer: Option<String>,

    /// Scopes to request; `offline_access` yields a refresh token
    #[arg(
        long,
        value_name = "SCOPES",
        requires = "client_id",
        default_value = "openid profile email offline_access"
    )]
    pub scope: String,
}

#[derive(Debug, clap::Args)]
pub struct RegisterOptions {
    /// E-mail of the account
    #[arg(long)]
    pub email: String,

    /// Read the password from the first line of standard input
    #[arg(long)]
    pub password_stdin: bool,
}
