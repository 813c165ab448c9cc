//! The loopback redirect endpoint of one login: `/callback` on a free port of this machine. A
//! request without the `state` of this login is refused and changes nothing.

use std::time::Duration;

use oauth2::CsrfToken;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::text::printable;

/// The longest head of a request that is read.
const MAX_HEAD_BYTES: usize = 16 << 10;
const READ_TIMEOUT: Duration = Duration::from_secs(5);
const NOT_THIS_LOGIN: &str = "This login is not the one that the terminal waits for. \
                              Open the address shown in the terminal.";

pub struct Callback {
    listener: TcpListener,
    port: u16,
}

/// What the redirect of this login must carry.
pub struct Expected<'a> {
    pub state: &'a CsrfToken,
    pub issuer: &'a str,
    /// Whether the issuer says that its redirects carry `iss` (RFC 9207).
    pub sends_iss: bool,
}

/// The redirect of the browser, with the authorization code or the reason why there is none.
pub struct Redirect {
    pub code: Result<String, Failure>,
    pub browser: Browser,
}

/// A browser that waits for its page.
pub struct Browser(TcpStream);

impl Browser {
    /// Shows how the login ended.
    pub async fn show(self, is_logged_in: bool) {
        let (status, text) = match is_logged_in {
            true => (
                "200 OK",
                "You are logged in. Close this window and continue in the terminal.",
            ),
            false => (
                "400 Bad Request",
                "The login failed. The terminal shows the reason.",
            ),
        };
        self.respond(status, text).await;
    }

    /// Sends the page. A browser that has gone is no failure: the terminal shows the same.
    async fn respond(mut self, status: &str, text: &str) {
        let page = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
             connection: close\r\n\r\n{text}",
            text.len()
        );
        let sent = async {
            self.0.write_all(page.as_bytes()).await?;
            self.0.shutdown().await
        };
        let _ = tokio::time::timeout(READ_TIMEOUT, sent).await;
    }
}

impl Callback {
    pub async fn listen() -> Result<Self, Failure> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    /// Waits for the redirect of this login. Browsers open connections that they do not use, so
    /// all are read at the same time.
    pub async fn redirect(&self, expected: &Expected<'_>) -> Result<Redirect, Failure> {
        let mut requests = JoinSet::new();
        loop {
            let read = tokio::select! {
                accepted = self.listener.accept() => {
                    let (browser, _) = accepted.map_err(failed)?;
                    requests.spawn(tokio::time::timeout(READ_TIMEOUT, target(browser)));
                    continue;
                }
                Some(read) = requests.join_next() => read,
            };
            let Ok(Ok(Some((browser, target)))) = read else {
                continue;
            };
            let browser = Browser(browser);
            let Some(query) = target.strip_prefix("/callback?") else {
                browser.respond("404 Not Found", "Page not found.").await;
                continue;
            };
            match code(query, expected) {
                Some(code) => return Ok(Redirect { code, browser }),
                None => browser.respond("400 Bad Request", NOT_THIS_LOGIN).await,
            }
        }
    }
}

fn failed(error: std::io::Error) -> Failure {
    Failure::failed(format!(
        "cannot listen for the browser on 127.0.0.1: {error}"
    ))
}

/// The path and the query that a browser requests.
async fn target(mut browser: TcpStream) -> Option<(TcpStream, String)> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        let length = browser
            .read(&mut chunk)
            .await
            .ok()
            .filter(|length| *length > 0)?;
        head.extend_from_slice(chunk.get(..length)?);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next()?.split(' ');
    let target = words
        .next()
        .filter(|method| *method == "GET")
        .and(words.next())?;
    Some((browser, target.to_owned()))
}

/// The code of a redirect, or why it has none; nothing if the redirect belongs to another login.
fn code(query: &str, expected: &Expected<'_>) -> Option<Result<String, Failure>> {
    let (mut state, mut code, mut iss, mut error, mut description) = (None, None, None, None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = match &*name {
            "state" => &mut state,
            "code" => &mut code,
            "iss" => &mut iss,
            "error" => &mut error,
            "error_description" => &mut description,
            _ => continue,
        };
        // A parameter must not be repeated (RFC 6749, 3.1).
        if field.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    if CsrfToken::new(state?) != *expected.state {
        return None;
    }
    let is_from_issuer = match &iss {
        Some(iss) => iss == expected.issuer,
        None => !expected.sends_iss,
    };
    if !is_from_issuer {
        return Some(Err(Failure::failed(
            "another issuer redirected the browser and its code was ignored; run `hub login` again",
        )));
    }
    let issuer = printable(expected.issuer);
    Some(match (error, code) {
        (Some(error), _) => {
            let error = printable(&error);
            let reason = match description {
                Some(description) => format!("{} ({error})", printable(&description)),
                None => error,
            };
            Err(Failure::failed(format!(
                "{issuer} refused the login: {reason}; run `hub login` again"
            )))
        }
        (None, Some(code)) if !code.is_empty() => Ok(code),
        (None, _) => Err(Failure::failed(format!(
            "{issuer} redirected the browser without a code; run `hub login` again"
        ))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, sends_iss: bool) -> Option<Result<String, Failure>> {
        let expected = Expected {
            state: &CsrfToken::new("s1".to_owned()),
            issuer: "https://issuer.example",
            sends_iss,
        };
        code(query, &expected)
    }

    #[test]
    fn only_the_redirect_of_this_login_counts() {
        for query in [
            "code=c",
            "state=&code=c",
            "state=s2&code=c",
            "state=s1&state=s1&code=c",
            "state=s1&code=c&code=d",
        ] {
            assert!(read(query, false).is_none(), "{query}");
        }
        assert!(matches!(read("state=s1&code=c", false), Some(Ok(code)) if code == "c"));
        let iss = "state=s1&code=c&iss=https%3A%2F%2Fissuer.example";
        assert!(matches!(read(iss, true), Some(Ok(_))));
    }

    #[test]
    fn a_redirect_without_a_code_of_the_issuer_ends_the_login() {
        for (query, sends_iss) in [
            ("state=s1&code=c&iss=https%3A%2F%2Fother.example", false),
            ("state=s1&code=c", true),
            ("state=s1&code=", false),
            ("state=s1", false),
            ("state=s1&error=access_denied&code=c", false),
        ] {
            assert!(matches!(read(query, sends_iss), Some(Err(_))), "{query}");
        }
    }
}
