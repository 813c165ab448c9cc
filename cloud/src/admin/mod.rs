//! What the command line does that no endpoint may: making platform administrators, replacing keys and authorities. Whoever runs it holds the database and its keys.

pub mod certificates;
pub mod check;
pub mod keys;

use std::io::BufRead;

use crate::app::App;
use crate::domain::accounts::{self, AdminCreated};
use crate::error::{Error, Result};

/// Far more than the longest password.
const LINE_MAX_BYTES: u64 = 4096;

/// The first line, without its end.
pub fn read_password(input: impl BufRead) -> Result<String> {
    let mut line = String::new();
    let read = input.take(LINE_MAX_BYTES).read_line(&mut line);
    read.map_err(|error| Error::field("password", format!("cannot be read from standard input: {error}")))?;
    let line = line.strip_suffix('\n').unwrap_or(&line);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Makes a platform administrator; answers what was done, in words.
pub async fn create(app: &App, email: &str, password: String) -> Result<String> {
    let email = email.trim();
    Ok(match accounts::create_admin(app, email, password).await? {
        AdminCreated::New => format!("{email} is a new platform administrator and can log in now"),
        AdminCreated::Promoted => {
            format!("{email} had an account, which is a platform administrator's from its next login or refresh on")
        }
        AdminCreated::Already => format!("{email} was a platform administrator already; nothing was changed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_first_line() {
        for (input, expected) in [
            ("secret word\n", "secret word"),
            ("secret word\r\nmore\n", "secret word"),
            ("  spaces count  ", "  spaces count  "),
            ("", ""),
        ] {
            assert_eq!(read_password(input.as_bytes()).expect("a line"), expected);
        }
        assert!(read_password(&b"\xff\xfe\n"[..]).is_err());
        assert_eq!(read_password(&vec![b'x'; 1 << 20][..]).expect("a line").len(), 4096);
    }
}
