//! `/app/mandates`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with};
use axum::extract::State;
use hub_base::db::Slice;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, Created};
use hub_core::http::check::{Check, filled, is_web_address};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_devices::device_instances::MAX_QUANTITY_CHARS;
use hub_identity::authn::Authn;
use hub_identity::authz::{EndUser, UserScope};
use hub_people::{accounts, supplier_oauth};
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::{self, MandateRow};
use super::super::{self as mandates, Form, Granted, MAX_DEVICES, NewMandate, RecipientName};
use super::{AppMandateResponse, Destination, secrets_of};
use crate::Parts;

const TAG: &str = "app";
const MAX_NAME_CHARS: usize = 200;
const MAX_EMAIL_CHARS: usize = 254;
const MAX_URL_CHARS: usize = 2000;
const MAX_QUANTITIES: usize = 64;
/// The longest time of a mandate.
const MAX_SECS: i64 = 5 * 366 * 24 * 3600;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/mandates",
            get_with(
                list,
                operation(
                    "appMandates.list",
                    TAG,
                    "Who else gets the caller's data, newest first",
                ),
            )
            .post_with(
                grant,
                operation_failing(
                    &[404, 409],
                    "appMandates.grant",
                    TAG,
                    "Let somebody else have data of the caller's devices",
                ),
            ),
        )
        .api_route(
            "/app/mandates/{mandateUuid}",
            delete_with(
                end,
                operation("appMandates.end", TAG, "End a mandate at once"),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MandatePath {
    /// The id of the mandate.
    mandate_uuid: Uuid,
}

/// A mandate for data of devices that the caller owns.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MandateRequest {
    /// Who gets the data.
    recipient: RecipientName,
    /// A hub that the caller owns. It may be absent if they own one hub, or name devices.
    hub_uuid: Option<HubUuid>,
    /// Devices of one supplier; all of the hub when absent, also those that it hears later.
    #[schemars(length(min = 1, max = MAX_DEVICES))]
    device_instance_ids: Option<Vec<i64>>,
    /// Names of quantities such as `temperature`; all when absent.
    #[schemars(length(min = 1, max = MAX_QUANTITIES), inner(length(min = 1, max = MAX_QUANTITY_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE)))]
    quantities: Option<Vec<String>>,
    /// Since when data is handed out; from now on when absent. Never from before the hub was the
    /// caller's.
    from: Option<Timestamp>,
    /// Until when it is: five years ahead at most.
    until: Timestamp,
    /// How the recipient gets it.
    form: Form,
    /// Where PUSH sends to.
    destination: Option<Destination>,
}

impl MandateRequest {
    fn checked(self, core: &Core, now: Timestamp) -> Result<NewMandate> {
        let mut check = Check::new();
        let RecipientName { name, email, url } = self.recipient;
        check.required("recipient.name", &name, MAX_NAME_CHARS);
        check.line("recipient.email", email.as_deref(), MAX_EMAIL_CHARS);
        let email = filled(email.as_deref()).map(str::to_owned);
        if let Some(email) = &email {
            let is_email = accounts::checked_email(email).is_ok();
            check.that(is_email, "recipient.email", "must be an e-mail address");
        }
        check.line("recipient.url", url.as_deref(), MAX_URL_CHARS);
        let url = filled(url.as_deref()).map(str::to_owned);
        let is_address = url.as_deref().is_none_or(is_web_address);
        check.that(
            is_address,
            "recipient.url",
            "must be a URL with https or http",
        );
        let device_instance_ids = self.device_instance_ids.map(|mut ids| {
            let message = format!("must have 1 to {MAX_DEVICES} items");
            let fits = (1..=MAX_DEVICES).contains(&ids.len());
            check.that(fits, "deviceInstanceIds", message);
            ids.truncate(MAX_DEVICES);
            ids.sort_unstable();
            ids.dedup();
            ids
        });
        let quantities = self.quantities.map(|mut names| {
            let message = format!("must have 1 to {MAX_QUANTITIES} items");
            let fits = (1..=MAX_QUANTITIES).contains(&names.len());
            check.that(fits, "quantities", message);
            names.truncate(MAX_QUANTITIES);
            for (index, name) in names.iter().enumerate() {
                check.required(&format!("quantities[{index}]"), name, MAX_QUANTITY_CHARS);
            }
            names.sort_unstable();
            names.dedup();
            names
        });
        let earliest = self.from.unwrap_or(now).max(now);
        check.that(
            self.until > earliest,
            "until",
            "must be in the future, and after `from`",
        );
        let latest = now.plus_secs(MAX_SECS);
        check.that(
            self.until <= latest,
            "until",
            "must be at most five years ahead",
        );
        let push_url = match (self.form, self.destination) {
            (Form::Pull, None) => None,
            (Form::Pull, Some(_)) => {
                check.that(false, "destination", "is for the form PUSH");
                None
            }
            (Form::Push, None) => {
                let message = "must have the URL that messages are sent to";
                check.that(false, "destination", message);
                None
            }
            (Form::Push, Some(Destination { url })) => {
                let schemes = supplier_oauth::schemes(core);
                match core.outgoing.check_url(&url, schemes) {
                    Ok(url) => Some(url.to_string()),
                    Err(message) => {
                        check.that(false, "destination.url", message);
                        None
                    }
                }
            }
        };
        check.done()?;
        Ok(NewMandate {
            recipient: RecipientName {
                name: name.trim().to_owned(),
                email,
                url,
            },
            hub_uuid: self.hub_uuid,
            device_instance_ids,
            quantities,
            from: self.from,
            until: self.until,
            form: self.form,
            push_url,
        })
    }
}

/// A mandate that was granted, with what is shown once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GrantedMandateResponse {
    #[serde(flatten)]
    mandate: AppMandateResponse,
    /// Of PULL: the bearer token that reads `/mandate/v1` for this mandate, and nothing else. It is
    /// not shown again.
    credential: Option<String>,
    /// Of PUSH: the secret that signs the messages, for the recipient. It is not shown again.
    signing_secret: Option<String>,
}

async fn list(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<AppMandateResponse>> {
    let (mandates, total) = shown(&core, &scope, page.slice()).await?;
    Ok(page.listed(mandates, total))
}

/// A page of the person's mandates, and how many there are.
async fn shown(
    core: &Core,
    scope: &UserScope,
    slice: Slice,
) -> Result<(Vec<AppMandateResponse>, i64)> {
    let mut conn = core.db.read().await?;
    let (rows, total) = store::list_own(&mut conn, scope.user_uuid(), slice).await?;
    let secrets = secrets_of(&mut conn, &rows).await?;
    let pushed = rows.iter().filter(|row| row.form == Form::Push);
    let pushed: Vec<Uuid> = pushed.map(|row| row.mandate_uuid).collect();
    let pushes = match pushed.is_empty() {
        true => Vec::new(),
        false => store::pushes(&mut conn, pushed).await?,
    };
    let now = core.clock.now();
    let response = |row: MandateRow| {
        let id = row.mandate_uuid;
        let push = pushes.iter().find(|push| push.mandate_uuid == id);
        let secrets = secrets.get(&row.tenant_uuid).map_or(&[][..], Vec::as_slice);
        AppMandateResponse::new(row, push, secrets, now)
    };
    let mandates = rows.into_iter().map(response).collect::<Result<_>>()?;
    Ok((mandates, total))
}

/// A page of the person's mandates, for the export of their data.
pub async fn exported(
    core: &Core,
    scope: &UserScope,
    slice: Slice,
) -> Result<Vec<impl Serialize + use<>>> {
    Ok(shown(core, scope, slice).await?.0)
}

async fn grant(
    EndUser { scope, .. }: EndUser,
    State(authn): State<Authn>,
    Json(request): Json<MandateRequest>,
) -> Result<Created<GrantedMandateResponse>> {
    let core = &authn.core;
    let new = request.checked(core, core.clock.now())?;
    let Granted {
        row,
        credential,
        signing_secret,
    } = mandates::grant(&authn, &scope, new).await?;
    let rows = [row];
    let secrets = secrets_of(&mut core.db.read().await?, &rows).await?;
    let [row] = rows;
    let of_supplier = secrets.get(&row.tenant_uuid).map_or(&[][..], Vec::as_slice);
    Ok(Created(GrantedMandateResponse {
        mandate: AppMandateResponse::new(row, None, of_supplier, core.clock.now())?,
        credential: credential.map(|text| text.expose_secret().to_owned()),
        signing_secret: signing_secret.map(|text| text.expose_secret().to_owned()),
    }))
}

async fn end(
    EndUser { scope, .. }: EndUser,
    State(authn): State<Authn>,
    Path(MandatePath { mandate_uuid }): Path<MandatePath>,
) -> Result<Answer<()>> {
    mandates::end(&authn, &scope, mandate_uuid).await?;
    Ok(Answer(()))
}
