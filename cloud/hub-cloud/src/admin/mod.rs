//! Commands that no endpoint offers: platform administrators, passwords, replacing keys and
//! authorities, moving the database, bringing in advisories. Their operator holds the database and
//! its keys, so no further authorization applies.

pub mod accounts;
pub mod certificates;
pub mod check;
pub mod keys;
pub mod moves;
pub mod vulnerabilities;

use std::io::{BufRead, IsTerminal};

use hub_base::error::{Error, Result};
use serde_json::Value;

/// Far above the longest password.
const LINE_MAX_BYTES: u64 = 4096;

/// Reads the first line, without its line ending.
pub fn read_password(input: impl BufRead) -> Result<String> {
    let mut line = String::new();
    let read = input.take(LINE_MAX_BYTES).read_line(&mut line);
    read.map_err(|error| {
        Error::field(
            "password",
            format!("not readable from standard input: {error}"),
        )
    })?;
    let line = line.strip_suffix('\n').unwrap_or(&line);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Asks for a new password at the terminal, twice and without echo.
pub fn ask_password() -> Result<String> {
    let refused = |message: String| Error::field("password", message);
    if !std::io::stdin().is_terminal() {
        let message = "cannot be asked for without a terminal; give it with --password-stdin";
        return Err(refused(message.to_owned()));
    }
    let ask = |prompt: &str| {
        rpassword::prompt_password(prompt)
            .map_err(|error| refused(format!("not readable from the terminal: {error}")))
    };
    let password = ask("Password, 8 to 200 characters: ")?;
    match ask("The same again: ")? == password {
        true => Ok(password),
        false => Err(refused(
            "the two do not match; nothing was changed".to_owned(),
        )),
    }
}

/// A list in the form that `--json` prints.
fn printed(list: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(list).map_err(Error::internal)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_the_first_line_of_the_input() {
        for (input, expected) in [
            ("secret word\n", "secret word"),
            ("secret word\r\nmore\n", "secret word"),
            ("  spaces count  ", "  spaces count  "),
            ("", ""),
        ] {
            assert_eq!(read_password(input.as_bytes()).expect("a line"), expected);
        }
        assert!(read_password(&b"\xff\xfe\n"[..]).is_err());
        assert_eq!(
            read_password(&vec![b'x'; 1 << 20][..])
                .expect("a line")
                .len(),
            4096
        );
    }
}
