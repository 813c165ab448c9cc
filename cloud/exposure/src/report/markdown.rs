//! The report as Markdown. What others have written is text in it, and no markup.

use std::fmt::Write;

use super::{DRAFT, Facts};
use crate::vulnerabilities::{InCountry, Statement};

/// The form as a whole.
pub fn write(facts: &Facts) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_to(&mut text, facts);
    text
}

fn write_to(text: &mut String, facts: &Facts) -> std::fmt::Result {
    let (listed, hubs, clock) = (&facts.shown.listed, &facts.shown.hubs, &facts.clock);
    writeln!(
        text,
        "# {}: draft of a report\n",
        plain(&listed.vulnerability_id)
    )?;
    writeln!(text, "{DRAFT}\n")?;
    writeln!(text, "| | |\n|---|---|")?;
    writeln!(text, "| Supplier | {} |", plain(&facts.tenant))?;
    writeln!(text, "| Vulnerability | {} |", plain(&listed.title))?;
    writeln!(text, "| Severity | {} |", listed.severity().name())?;
    match &facts.exploited {
        Some(known) => {
            let ransomware = match known.ransomware {
                true => ", also for ransomware",
                false => "",
            };
            let since = plain(&known.added_on);
            writeln!(
                text,
                "| Exploited | listed by CISA since {since}{ransomware} |"
            )?;
        }
        None => writeln!(text, "| Exploited | not known |")?,
    }
    writeln!(text, "| Draft of | {} |", facts.generated_at)?;

    writeln!(text, "\n## Clock\n\n| | due |\n|---|---|")?;
    writeln!(text, "| Aware | {} |", clock.aware_at)?;
    writeln!(
        text,
        "| Early warning, 24 hours | {} |",
        clock.early_warning_at
    )?;
    writeln!(
        text,
        "| Notification, 72 hours | {} |",
        clock.notification_at
    )?;
    writeln!(
        text,
        "| Final report, 14 days | {} |",
        clock.final_report_at
    )?;
    let counted = match facts.exploited {
        Some(_) => {
            "It counts from when what hubs run was found affected, or from when the vulnerability was listed as \
             exploited, whichever was later."
        }
        None => {
            "The vulnerability is not known to be exploited. The clock counts from when what hubs run was found \
             affected."
        }
    };
    writeln!(text, "\n{counted}")?;

    writeln!(text, "\n## Hubs\n\n| | hubs |\n|---|---|")?;
    writeln!(text, "| Exposed | {} |", hubs.exposed)?;
    writeln!(text, "| Exposed, update running | {} |", hubs.updating)?;
    writeln!(text, "| Not affected, as stated | {} |", hubs.not_affected)?;
    writeln!(text, "| Fixed | {} |", hubs.fixed)?;

    writeln!(
        text,
        "\n| Country | exposed | update running | not affected | fixed |\n|---|---|---|---|---|"
    )?;
    for InCountry { country, hubs } in &facts.countries {
        let country = country.as_deref().unwrap_or("not stated");
        writeln!(
            text,
            "| {country} | {} | {} | {} | {} |",
            hubs.exposed, hubs.updating, hubs.not_affected, hubs.fixed
        )?;
    }

    writeln!(
        text,
        "\n## Affected\n\n| Package | Version | Fixed in |\n|---|---|---|"
    )?;
    for package in &facts.shown.packages {
        writeln!(
            text,
            "| {} ({}) | {} | {} |",
            plain(&package.name),
            plain(&package.ecosystem),
            plain(&package.version),
            package
                .fixed_in
                .as_deref()
                .map_or_else(|| "-".to_owned(), plain)
        )?;
    }
    writeln!(text, "\n## Measures\n")?;
    if facts.measures.is_empty() {
        writeln!(text, "- No job was given since it is known.")?;
    }
    for done in &facts.measures {
        let (what, release) = (done.what(), plain(&done.release()));
        let (began_at, progress) = (done.measure.began_at, done.progress());
        writeln!(text, "- {began_at}: {what} {release}, {progress}")?;
    }
    if facts.statements.is_empty() {
        writeln!(text, "- No statement was made.")?;
    }
    for statement in &facts.statements {
        writeln!(text, "- {}", said(statement))?;
    }
    Ok(())
}

fn said(statement: &Statement) -> String {
    let mut text = format!("{}: {}", statement.updated_at, statement.status.name());
    match statement.release_uuid {
        Some(release) => text.push_str(&format!(", hubs that run the release {release}")),
        None => text.push_str(", all hubs"),
    }
    if let Some(justification) = statement.justification {
        text.push_str(&format!(", {}", justification.name()));
    }
    for said in [&statement.impact, &statement.action].into_iter().flatten() {
        text.push_str(&format!(". {}", plain(said)));
    }
    text
}

/// Text on one line, in which nothing is markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&' => {
                plain.push('\\');
                plain.push(c);
            }
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}
