//! `hub codes`: creates, draws, lists and revokes claim codes.

use clap::Subcommand;
use hub_client::{ClaimCode, operations};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::{Consent, Global, duration};
use crate::terminal::{Table, confirm, note, print, print_json, short_time, state};
use crate::text::printable;

pub const CODES_HELP: &str = "\
Examples:
  hub codes create --qr --label roof
  hub codes create --uses 50 --valid 30d --json
  hub codes list
  hub codes revoke 7K3M-9QXT-0V4B-HD2R";

#[derive(Debug, Subcommand)]
pub enum CodesCommand {
    /// Create a claim code for hubs
    #[command(after_help = CODES_HELP)]
    Create {
        /// Print a QR code
        #[arg(long)]
        qr: bool,
        /// Number of hubs that may claim with it
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        uses: u32,
        /// Validity, such as 12h or 30d
        #[arg(long, default_value = "7d", value_parser = duration)]
        valid: u64,
        /// Label of the hubs
        #[arg(long)]
        label: Option<String>,
        /// Note in the list of codes
        #[arg(long)]
        note: Option<String>,
        /// Bundle that is applied at the claim
        #[arg(long, value_name = "UUID")]
        bundle: Option<Uuid>,
        /// App user that the hubs belong to
        #[arg(long, value_name = "UUID")]
        owner: Option<Uuid>,
    },
    /// List claim codes, the latest first
    List,
    /// Revoke a claim code, so that it can no longer be used
    Revoke {
        /// The code, or its id
        code: String,
        #[command(flatten)]
        consent: Consent,
    },
}

pub async fn run(global: &Global, command: CodesCommand) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    match command {
        CodesCommand::Create {
            qr,
            uses,
            valid,
            label,
            note: text,
            bundle,
            owner,
        } => {
            let body = json!({
                "validForSeconds": valid, "maxUses": uses, "hubIdentifier": label, "note": text,
                "bundleUuid": bundle, "ownerUserUuid": owner,
            });
            let created: Value = client
                .call(operations::CREATE_CLAIM_CODE.call().body(body))
                .await?;
            if global.json {
                return print_json(&created);
            }
            let code: ClaimCode = serde_json::from_value(created)?;
            if qr {
                print(&qr_code(
                    code.pairing_url.as_deref().unwrap_or(&code.claim_code),
                )?)?;
            }
            print(&format!("{}\n", printable(&code.claim_code)))?;
            let hubs = if code.max_uses == 1 {
                "one hub".to_owned()
            } else {
                format!("{} hubs", code.max_uses)
            };
            note(&format!(
                "For {hubs}, until {}. On the hub:",
                short_time(code.expires_at)
            ));
            let (service, claim_code) = (client.service(), printable(&code.claim_code));
            note(&format!(
                "  hub-agent run --service-url {service} --claim-code {claim_code}"
            ));
            if let Some(url) = &code.pairing_url {
                note(&format!("The owner can follow it at {}", printable(url)));
            }
            Ok(())
        }
        CodesCommand::List => {
            let records: Vec<Value> = client.list(operations::CLAIM_CODES.call()).await?;
            if global.json {
                return print_json(&Value::Array(records));
            }
            let mut table =
                Table::new(&["CODE", "STATUS", "USED", "EXPIRES", "LABEL", "NOTE", "ID"]);
            for record in records {
                let code: ClaimCode = serde_json::from_value(record)?;
                let text = |text: &Option<String>| printable(text.as_deref().unwrap_or("-"));
                table.row(vec![
                    printable(&code.claim_code),
                    state(&code.status),
                    format!("{}/{}", code.use_count, code.max_uses),
                    short_time(code.expires_at),
                    text(&code.hub_identifier),
                    text(&code.note),
                    code.id.to_string(),
                ]);
            }
            table.print("There are no claim codes yet: hub codes create --qr")
        }
        CodesCommand::Revoke { code, consent } => {
            let what = format!(
                "The code {} can no longer be used to claim hubs. This cannot be undone.",
                printable(&code)
            );
            confirm(&what, consent.yes)?;
            client
                .run(
                    operations::REVOKE_CLAIM_CODE
                        .call()
                        .path("claimCode", &code),
                )
                .await?;
            note("The code is revoked.");
            Ok(())
        }
    }
}

/// A QR code of characters for a dark terminal: its light modules are drawn. Cameras read it on a
/// light background too.
fn qr_code(text: &str) -> Result<String, Failure> {
    let code = QrCode::new(text)
        .map_err(|error| Failure::failed(format!("cannot create a QR code: {error}")))?;
    let text = code
        .render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .build();
    Ok(text + "\n\n")
}
