//! Validation of e-mail addresses, passwords and nicknames. Pure functions; each error names the
//! field and says what is accepted.

use hub_protocol::FieldError;
use serde_json::Value;

const EMAIL_MAX_BYTES: usize = 254;
const LOCAL_MAX_BYTES: usize = 64;
const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 8..=200;
pub const NICKNAME_MAX_CHARS: usize = 80;

fn refused(field: &str, message: impl Into<String>) -> FieldError {
    FieldError {
        field: field.to_owned(),
        message: message.into(),
    }
}

/// A required member of a request that must be text.
pub fn required(field: &str, value: Option<Value>) -> Result<String, FieldError> {
    optional(field, value)?.ok_or_else(|| refused(field, "is required"))
}

/// An optional member of a request that must be text.
pub fn optional(field: &str, value: Option<Value>) -> Result<Option<String>, FieldError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(refused(field, "must be a string")),
    }
}

/// The address in lower case, so that two spellings of one mailbox are one account.
pub fn email(text: &str) -> Result<String, FieldError> {
    let email = text.trim().to_lowercase();
    if email.len() > EMAIL_MAX_BYTES {
        return Err(refused(
            "email",
            format!("must have at most {EMAIL_MAX_BYTES} characters"),
        ));
    }
    let well_formed = email
        .rsplit_once('@')
        .is_some_and(|(local, domain)| is_local(local) && is_domain(domain));
    if well_formed {
        Ok(email)
    } else {
        Err(refused(
            "email",
            "must be an e-mail address such as ada@example.com",
        ))
    }
}

/// A dot-atom (RFC 5322); letters outside of ASCII are allowed (RFC 6531).
fn is_local(local: &str) -> bool {
    let is_atom = |c: char| match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c),
        false => c.is_alphanumeric(),
    };
    local.len() <= LOCAL_MAX_BYTES
        && local
            .split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

/// At least two labels.
fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.contains('.') && domain.split('.').all(is_label)
}

/// Any characters are allowed. Only the length is checked, since length is what protects against
/// guessing.
pub fn password(field: &str, text: String) -> Result<String, FieldError> {
    let (min, max) = (PASSWORD_CHARS.start(), PASSWORD_CHARS.end());
    match text.chars().take(max + 1).count() {
        count if count < *min => Err(refused(
            field,
            format!("must have at least {min} characters, since shorter ones can be guessed"),
        )),
        count if count > *max => Err(refused(
            field,
            format!("must have at most {max} characters"),
        )),
        _ => Ok(text),
    }
}

pub fn nickname(text: Option<&str>) -> Result<Option<String>, FieldError> {
    let Some(text) = text.map(str::trim) else {
        return Ok(None);
    };
    let message = match () {
        () if text.is_empty() => "must not be blank; omit it instead".to_owned(),
        () if text.chars().count() > NICKNAME_MAX_CHARS => {
            format!("must have at most {NICKNAME_MAX_CHARS} characters")
        }
        () if text.chars().any(char::is_control) => {
            "must not contain control characters".to_owned()
        }
        () => return Ok(Some(text.to_owned())),
    };
    Err(refused("nickname", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_is_normalised_to_lower_case() {
        for (text, expected) in [
            ("Ada@Example.COM", "ada@example.com"),
            (" a.b+c@x-y.example ", "a.b+c@x-y.example"),
            ("jörg@münchen.example", "jörg@münchen.example"),
            ("o'hara@a.b.c.example", "o'hara@a.b.c.example"),
        ] {
            assert_eq!(email(text).expect(text), expected);
        }
    }

    #[test]
    fn invalid_email_is_rejected() {
        let long_local = format!("{}@example.com", "a".repeat(65));
        let long = format!("a@{}.example", "b.".repeat(130));
        for text in [
            "",
            " ",
            "ada",
            "ada@",
            "@example.com",
            "ada@localhost",
            "a b@example.com",
            "a@b@example.com",
            "a..b@example.com",
            ".a@example.com",
            "a@.example.com",
            "a@example..com",
            "a@-x.com",
            "a@x-.com",
            "a\0@example.com",
            "a@exam\nple.com",
            "a@example.com\u{0}",
            "<a@example.com>",
            "a,b@example.com",
            &long_local,
            &long,
        ] {
            assert_eq!(email(text).expect_err(text).field, "email");
        }
    }

    #[test]
    fn password_length_is_bounded() {
        for text in ["12345678", "ÄÖÜäöüßẞ", &"x".repeat(200)] {
            assert_eq!(password("password", text.to_owned()).as_deref(), Ok(text));
        }
        for (text, part) in [
            ("", "at least 8"),
            ("1234567", "at least 8"),
            (&"x".repeat(201), "at most 200"),
        ] {
            let error = password("password", text.to_owned()).expect_err(text);
            assert_eq!(error.field, "password");
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn a_nickname_is_trimmed_and_bounded() {
        assert_eq!(nickname(None), Ok(None));
        assert_eq!(nickname(Some(" Ada ")), Ok(Some("Ada".to_owned())));
        for text in ["", "  ", "a\0b", &"x".repeat(81)] {
            assert_eq!(nickname(Some(text)).expect_err(text).field, "nickname");
        }
    }
}
