//! The page that the browser comes back to: `/callback` on a free port of this machine. A request
//! without the `state` of this login changes nothing.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::Failure;
use crate::terminal::printable;

/// The longest head of a request that is read.
const MAX_HEAD_BYTES: usize = 16 << 10;
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

pub struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    pub async fn listen() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::failed(format!("cannot listen for the browser: {error}"))
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    /// Waits for the browser, and returns the code that it brings. `issuer` is what `iss` has to be
    /// where it is given (RFC 9207).
    pub async fn code(&self, state: &str, issuer: &str) -> Result<String, Failure> {
        loop {
            let accepted = self.listener.accept().await;
            let (mut browser, _) = accepted.map_err(|error| {
                Failure::failed(format!("cannot listen for the browser: {error}"))
            })?;
            let Ok(Some(query)) = tokio::time::timeout(READ_TIMEOUT, query(&mut browser)).await
            else {
                continue;
            };
            let parameters: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect();
            let outcome = outcome(&parameters, state, issuer);
            let page = match &outcome {
                None => "This login is not the one that the terminal waits for.",
                Some(Ok(_)) => "You are logged in. Close this window and continue in the terminal.",
                Some(Err(_)) => "The login failed. The terminal shows the reason.",
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n";
            let _ = browser
                .write_all(format!("{head}content-length: {}\r\n\r\n{page}", page.len()).as_bytes())
                .await;
            let _ = browser.shutdown().await;
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }
}

/// The query of a request for `/callback`.
async fn query(browser: &mut TcpStream) -> Option<String> {
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
    let target = head
        .lines()
        .next()?
        .strip_prefix("GET ")?
        .split(' ')
        .next()?;
    target.strip_prefix("/callback?").map(str::to_owned)
}

/// What the browser brings; nothing if it belongs to another login.
fn outcome(
    parameters: &[(String, String)],
    state: &str,
    issuer: &str,
) -> Option<Result<String, Failure>> {
    let value = |wanted: &str| {
        let mut values = parameters.iter().filter(|(name, _)| name == wanted);
        // A repeated parameter is none (RFC 6749, 3.1).
        values
            .next()
            .map(|(_, value)| value.as_str())
            .filter(|_| values.next().is_none())
    };
    if value("state") != Some(state) {
        return None;
    }
    if value("iss").is_some_and(|iss| iss != issuer) {
        return Some(Err(Failure::failed(
            "the answer comes from another issuer; run `hub login` again",
        )));
    }
    Some(match (value("code"), value("error")) {
        (Some(code), None) => Ok(code.to_owned()),
        (_, error) => {
            let reason = printable(value("error_description").or(error).unwrap_or("no code"));
            Err(Failure::failed(format!(
                "the issuer refused the login: {reason}; run `hub login` again"
            )))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Option<Result<String, Failure>> {
        let parameters: Vec<_> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        outcome(&parameters, "s1", "https://issuer.example")
    }

    #[test]
    fn only_the_answer_to_this_login_counts() {
        assert!(
            read("code=c").is_none()
                && read("state=s2&code=c").is_none()
                && read("state=s1&state=s1&code=c").is_none()
        );
        assert!(matches!(read("state=s1&code=c"), Some(Ok(code)) if code == "c"));
        assert!(matches!(
            read("state=s1&code=c&iss=https%3A%2F%2Fother.example"),
            Some(Err(_))
        ));
        assert!(matches!(read("state=s1&error=access_denied"), Some(Err(_))));
    }
}
