//! Which passwords may be set (NIST SP 800-63B, 3.1.1): at least 8 characters, and nothing that
//! those who guess try first, which are the commonest passwords and the names of the account. There
//! are no rules about kinds of characters: length is what protects.

use hub_identity::authn::fields;
use hub_protocol::FieldError;
use zxcvbn::matching::patterns::MatchPattern;
use zxcvbn::{Score, zxcvbn};

/// The parts of names that are long enough to be guessed from.
const MIN_NAME_CHARS: usize = 4;

/// Checks a new password. `names` are the e-mail and the nickname of the account.
pub fn checked(field: &str, text: String, names: &[&str]) -> Result<String, FieldError> {
    let text = fields::password(field, text)?;
    let refused = |message: &str| FieldError {
        field: field.to_owned(),
        message: message.to_owned(),
    };
    if is_name(&text, names) {
        return Err(refused(
            "must not be the name or the e-mail of the account, with or without digits; choose some words that only you know",
        ));
    }
    if is_common(&text) {
        return Err(refused(
            "is among the passwords that are guessed first; choose another, such as some words that only you know",
        ));
    }
    Ok(text)
}

/// The letters of a text.
fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphabetic())
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_name(password: &str, names: &[&str]) -> bool {
    let password = letters(password);
    let parts = names.iter().flat_map(|name| {
        let (local, domain) = name.split_once('@').unwrap_or((name, ""));
        let words = local.split(|c: char| !c.is_alphanumeric());
        let whole = [*name, local, domain];
        whole.into_iter().chain(words).collect::<Vec<_>>()
    });
    parts.map(letters).any(|part| {
        part.chars().count() >= MIN_NAME_CHARS && (password == part || password == part.repeat(2))
    })
}

/// Whether the whole text is one entry of the lists of common passwords, also with signs for
/// letters, or is guessed within a thousand attempts; of digits alone, within a hundred million.
fn is_common(password: &str) -> bool {
    let estimate = zxcvbn(password, &[]);
    let is_entry = matches!(estimate.sequence(), [only] if matches!(
        &only.pattern,
        MatchPattern::Dictionary(_) | MatchPattern::Sequence(_) | MatchPattern::Repeat(_)
    ));
    let is_digits = password.chars().all(|c| c.is_ascii_digit());
    let guessed = if is_digits { Score::Two } else { Score::Zero };
    is_entry || estimate.score() <= guessed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_that_are_guessed_first_are_refused() {
        let names = ["ada.lovelace@example.com", "Countess Ada"];
        for text in [
            "password",
            "Password",
            "password1",
            "passw0rd",
            "12345678",
            "123456789012",
            "qwertyuiop",
            "iloveyou",
            "aaaaaaaaaaaa",
            "abcdefgh",
            "ada.lovelace@example.com",
            "AdaLovelace",
            "lovelace1815",
            "countess",
            "Countess Ada 1",
            "lovelacelovelace",
            "example.com",
        ] {
            let error = checked("password", text.to_owned(), &names).expect_err(text);
            assert_eq!(error.field, "password");
        }
        for text in [
            "correct horse battery staple",
            "a long password",
            "lovelace likes numbers",
            "Tr0ub4dour&3",
            "xkqzvwpb",
            "ÄÖÜäöüßẞ",
        ] {
            assert_eq!(
                checked("password", text.to_owned(), &names).as_deref(),
                Ok(text)
            );
        }
    }
}
