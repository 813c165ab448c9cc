//! The content and layout of a mail: the same words as plain text and as HTML. The HTML loads
//! nothing, and every value in it is escaped.

use std::time::SystemTime;

use hub_base::error::{Error, Result};
use hub_protocol::Timestamp;
use lettre::Message;
use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::MailConfig;

/// The words of a mail.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailContent {
    pub subject: String,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// Text to be copied exactly: a token, or a request to send.
    Code(String),
    /// A URL to open.
    Link(String),
    /// A separate paragraph: what to do if the mail is unexpected.
    Note(String),
    /// Words of somebody else, on one line: set apart, and nothing in them becomes a link.
    Quote(String),
}

/// Marks the mail as automatic, so that automatic responders do not reply to it (RFC 3834).
#[derive(Clone, Debug)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> std::result::Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

impl MailContent {
    /// The message in its sent form. Its Message-ID is derived from the mail's uuid: if it is sent
    /// twice, the recipient sees one mail.
    pub fn message(
        &self,
        config: &MailConfig,
        to: Mailbox,
        mail_uuid: Uuid,
        now: Timestamp,
    ) -> Result<Message> {
        let message_id = format!("<{mail_uuid}@{}>", config.from.email.domain());
        Message::builder()
            .from(config.from.clone())
            .to(to)
            .subject(self.subject.clone())
            .message_id(Some(message_id))
            .date(SystemTime::from(now.to_datetime()))
            .header(AutoSubmitted)
            .multipart(MultiPart::alternative_plain_html(self.text(), self.html()))
            .map_err(Error::internal)
    }

    fn text(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Note(text) => format!("{text}\n"),
            Part::Quote(text) => format!("> {}\n", unlinked(text)),
            Part::Code(text) | Part::Link(text) => text
                .lines()
                .map(|line| format!("    {line}\n"))
                .collect::<String>(),
        };
        self.parts
            .iter()
            .map(part)
            .collect::<Vec<String>>()
            .join("\n")
    }

    fn html(&self) -> String {
        let subject = escaped(&self.subject);
        let parts: String = self.parts.iter().map(Part::html).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>{subject}</title></head>\n\
             <body style=\"margin:0;padding:24px 12px;background:#f3f4f6\">\n\
             <div style=\"max-width:560px;margin:0 auto;padding:32px;background:#ffffff;border:1px solid #e5e7eb;border-radius:8px;\
             font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;color:#111827\">\n\
             <h1 style=\"margin:0 0 16px;font-size:20px;line-height:1.3\">{subject}</h1>\n{parts}</div>\n</body>\n</html>\n"
        )
    }
}

impl Part {
    fn html(&self) -> String {
        match self {
            Self::Text(text) => format!("<p style=\"margin:0 0 16px\">{}</p>\n", escaped(text)),
            Self::Code(text) => format!(
                "<pre style=\"margin:0 0 16px;padding:12px;background:#f3f4f6;border-radius:6px;white-space:pre-wrap;\
                 overflow-wrap:anywhere;font:14px/1.5 ui-monospace,Menlo,Consolas,monospace\">{}</pre>\n",
                escaped(text)
            ),
            Self::Link(url) => {
                let url = escaped(url);
                format!(
                    "<p style=\"margin:0 0 16px;overflow-wrap:anywhere\"><a href=\"{url}\" style=\"color:#1d4ed8\">{url}</a></p>\n"
                )
            }
            Self::Quote(text) => format!(
                "<blockquote style=\"margin:0 0 16px;padding:4px 0 4px 12px;border-left:3px solid #d1d5db;overflow-wrap:anywhere\">\
                 {}</blockquote>\n",
                escaped(&unlinked(text))
            ),
            Self::Note(text) => format!(
                "<p style=\"margin:24px 0 0;padding-top:16px;border-top:1px solid #e5e7eb;font-size:14px;color:#4b5563\">{}</p>\n",
                escaped(text)
            ),
        }
    }
}

/// The text with a space after each character that makes mail programs turn words into links: the
/// dot of a domain, in all its forms, and the colon and the at sign of addresses. Characters that
/// reorder or break the line, and could so change its meaning, are removed.
fn unlinked(text: &str) -> String {
    let is_joint = |c: char| ".:@\u{3002}\u{ff0e}\u{ff61}\u{2024}\u{ff1a}\u{ff20}".contains(c);
    let is_deceptive = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
    };
    let mut unlinked = String::with_capacity(text.len());
    let mut follows_joint = false;
    for c in text.chars().filter(|c| !is_deceptive(*c)) {
        if follows_joint && !c.is_whitespace() {
            unlinked.push(' ');
        }
        unlinked.push(c);
        follows_joint = is_joint(c);
    }
    unlinked
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Encryption;

    #[test]
    fn words_of_others_hold_no_link() {
        for (text, expected) in [
            ("Acme", "Acme"),
            ("Kerr & Söhne Inc.", "Kerr & Söhne Inc."),
            ("Acme B.V.", "Acme B. V."),
            (
                "see https://evil.example/a?b=c",
                "see https: //evil. example/a?b=c",
            ),
            ("www.evil.example", "www. evil. example"),
            ("evil\u{3002}example", "evil\u{3002} example"),
            ("pay@evil.example", "pay@ evil. example"),
            ("mailto:eve", "mailto: eve"),
            ("evil\u{200b}.\u{200d}example", "evil. example"),
            ("\u{202e}elpmaxe.live", "elpmaxe. live"),
            ("a\u{2028}\r\nb", "ab"),
        ] {
            assert_eq!(unlinked(text), expected, "{text:?}");
        }
        let content = MailContent {
            subject: "Invitation".to_owned(),
            parts: vec![Part::Quote(
                "<a href=\"https://evil.example\">Acme</a>".to_owned(),
            )],
        };
        assert_eq!(
            content.text(),
            "> <a href=\"https: //evil. example\">Acme</a>\n"
        );
        let html = content.html();
        assert!(
            !html.contains("<a ") && !html.contains("://") && !html.contains("evil.example"),
            "{html}"
        );
    }

    #[test]
    fn values_are_escaped_in_headers_and_html() {
        let config = MailConfig {
            host: "localhost".to_owned(),
            port: 25,
            encryption: Encryption::None,
            credentials: None,
            from: "Hubs <hubs@example.com>".parse().expect("a mailbox"),
        };
        let content = MailContent {
            subject: "Come to <b>Söhne & \"Co\"</b>\r\nBcc: eve@example.com".to_owned(),
            parts: vec![
                Part::Text("<script>alert('1')</script>".to_owned()),
                Part::Code("a\nb".to_owned()),
                Part::Link("https://hubs.example.com/?a=1&b=\"2\"".to_owned()),
                Part::Note(".\r\n.\r\nQUIT".to_owned()),
            ],
        };
        let html = content.html();
        assert!(
            !html.contains("<script") && !html.contains("<b>") && !html.contains("src="),
            "{html}"
        );
        assert!(
            html.contains("&lt;script&gt;alert(&#39;1&#39;)") && html.contains("b=&quot;2&quot;"),
            "{html}"
        );
        assert_eq!(content.text().lines().nth(2), Some("    a"));
        let to = "ada@example.com".parse().expect("a mailbox");
        let message = content.message(
            &config,
            to,
            Uuid::nil(),
            Timestamp::from_micros(1_800_014_400_000_000),
        );
        let message = String::from_utf8(message.expect("a message").formatted()).expect("ASCII");
        let (head, _) = message.split_once("\r\n\r\n").expect("a head and a body");
        assert!(
            !head
                .lines()
                .any(|line| line.to_lowercase().starts_with("bcc:")),
            "{head}"
        );
        for line in [
            "From: Hubs <hubs@example.com>",
            "To: ada@example.com",
            "Message-ID: <00000000-0000-0000-0000-000000000000@example.com>",
            "Auto-Submitted: auto-generated",
            "Date: Fri, 15 Jan 2027 12:00:00 +0000",
        ] {
            assert!(
                head.lines().any(|other| other == line),
                "{line} is not in {head}"
            );
        }
    }
}
