//! `hub codes`: creates, draws, lists and revokes claim codes.

use hub_client::{ClaimCode, operations};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::{Value, json};

use crate::args::{CodesCommand, Global};
use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::terminal::{Table, confirm, note, print, print_json, short_time, state};
use crate::text::printable;

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
