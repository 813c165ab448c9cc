//! People and the tenants they are members of.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::db::sql;
use hub_identity::authn::user::{self, Session, User};
use hub_identity::authz::permission::Role;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use reqwest::header::HeaderName;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::app::TestApp;
use crate::client::{Call, Client};

/// Someone with an account and a good access token.
#[derive(Clone)]
pub struct Person {
    pub email: String,
    pub login: Login,
    pub client: Client,
}

/// What registering, logging in and refreshing answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub access_token: String,
    pub refresh_token: String,
    pub expires_at: Timestamp,
}

impl Login {
    /// The login named in the access token.
    pub fn login_uuid(&self) -> Uuid {
        let payload = self
            .access_token
            .split('.')
            .nth(1)
            .expect("a token has a payload");
        let payload = URL_SAFE_NO_PAD
            .decode(payload)
            .expect("the payload is base64");
        let claims: serde_json::Value =
            serde_json::from_slice(&payload).expect("the claims are JSON");
        claims["sid"]
            .as_str()
            .and_then(|sid| sid.parse().ok())
            .expect("the claims name a login")
    }
}

pub const PASSWORD: &str = "correct horse battery staple";

impl Person {
    /// A new account, of which there is no other. It is created from an address of its own, unless
    /// the client names one: those of one address are counted.
    pub async fn register(client: &Client) -> Self {
        let id = Uuid::new_v4();
        let email = format!("{}@example.com", id.simple());
        let body = json!({"email": email, "password": PASSWORD});
        let forwarded = HeaderName::from_static("x-forwarded-for");
        let [a, b, c, ..] = id.into_bytes();
        let from = match client.headers.contains_key(&forwarded) {
            true => client.clone(),
            false => client.header(forwarded, &format!("10.{a}.{b}.{c}")),
        };
        let login: Login = from
            .post("/auth/register")
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        let client = client.bearer(&login.access_token);
        Self {
            email,
            login,
            client,
        }
    }

    /// The same person with the token of a platform administrator.
    pub fn as_platform_admin(&self, app: &TestApp) -> Client {
        let login_uuid = self.login.login_uuid();
        let Login {
            user_uuid,
            persona_uuid,
            ..
        } = self.login;
        let user = User {
            user_uuid,
            persona_uuid,
            is_platform_admin: true,
            session: Session::Login(login_uuid),
        };
        let (token, _) = user::issue(
            &app.app.parts().authn,
            &user,
            login_uuid,
            None,
            app.app.clock.now(),
        )
        .expect("a token");
        self.client.bearer(&token)
    }
}

/// A tenant's key, and who calls with it.
#[derive(Clone)]
pub struct ApiKey {
    pub api_key_id: i64,
    pub raw: String,
    pub client: Client,
}

/// A tenant as its owner sees it.
#[derive(Clone)]
pub struct Tenant {
    pub tenant_uuid: TenantUuid,
    pub owner: Person,
    /// The owner, acting in this tenant.
    pub client: Client,
}

impl Tenant {
    /// A new tenant with an owner of its own.
    pub async fn create(client: &Client) -> Self {
        Self::create_by(&Person::register(client).await).await
    }

    /// Another tenant of the same owner.
    pub async fn create_by(owner: &Person) -> Self {
        let name = format!("Tenant of {}", owner.email);
        let reply = owner
            .client
            .post("/tenant/tenants")
            .json(&json!({"name": name}))
            .call()
            .await
            .expect(200);
        let tenant_uuid = reply.json()["data"]["tenantUuid"]
            .as_str()
            .and_then(|uuid| uuid.parse().ok());
        let tenant_uuid = tenant_uuid.unwrap_or_else(|| panic!("no tenantUuid in {}", reply.body));
        let client = owner.client.tenant(tenant_uuid);
        Self {
            tenant_uuid,
            owner: owner.clone(),
            client,
        }
    }

    /// Someone new with this role, acting in this tenant.
    pub async fn member(&self, role: Role) -> Client {
        self.member_person(role)
            .await
            .client
            .tenant(self.tenant_uuid)
    }

    /// Makes someone a member; answers the persona they have here.
    pub async fn let_in(&self, person: &Person, role: Role) -> PersonaUuid {
        let path = format!("/tenant/tenants/{}/members", self.tenant_uuid);
        let body = json!({"personaUuid": person.login.persona_uuid, "role": role});
        let member = self
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .json();
        let persona_uuid = member["data"]["personaUuid"]
            .as_str()
            .and_then(|uuid| uuid.parse().ok());
        persona_uuid.unwrap_or_else(|| panic!("no personaUuid in {member}"))
    }

    /// A new API key with the scopes and settings in `body`, which needs no name.
    pub async fn api_key(&self, mut body: serde_json::Value) -> ApiKey {
        body["name"] = json!("a back-end");
        let reply = self
            .client
            .post("/tenant/api-keys")
            .json(&body)
            .call()
            .await
            .expect(201)
            .json();
        let raw = reply["data"]["apiKey"].as_str().expect("a key").to_owned();
        let api_key_id = reply["data"]["apiKeyId"].as_i64().expect("an id");
        let client =
            Client::new(&self.client.url).header(HeaderName::from_static("x-api-key"), &raw);
        ApiKey {
            api_key_id,
            raw,
            client: client.tenant(self.tenant_uuid),
        }
    }

    /// As `member`, for tests that need to know who it is.
    pub async fn member_person(&self, role: Role) -> Person {
        let person = Person::register(&Client::new(&self.client.url)).await;
        self.let_in(&person, role).await;
        person
    }

    /// Offers the tenant to somebody; answers the request's uuid.
    pub async fn offer(&self, body: &serde_json::Value) -> String {
        let path = format!("/tenant/tenants/{}/transfer", self.tenant_uuid);
        let reply = self.client.post(&path).json(body).call().await.expect(200);
        reply.json()["data"]["requestUuid"]
            .as_str()
            .expect("a request")
            .to_owned()
    }

    /// An API key with these scopes, as it is sent.
    pub async fn stored_api_key(&self, app: &TestApp, scopes: &str) -> String {
        let id: String = Uuid::new_v4()
            .simple()
            .to_string()
            .chars()
            .take(8)
            .collect();
        let secret = Uuid::new_v4().simple().to_string();
        let mut tx = app.app.db.begin().await.expect("a transaction");
        sql(
            "INSERT INTO api_keys (tenant_uuid, key_prefix, secret_hash, name, scopes, \
             rate_limit_per_minute, created_by_user_uuid, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind((
            self.tenant_uuid,
            id.as_str(),
            hub_base::sealing::hash(&secret),
            "a test's key",
            scopes,
            1_000_000_i64,
            self.owner.login.user_uuid,
            app.app.clock.now(),
        ))
        .execute(&mut tx)
        .await
        .expect("a key");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        format!("hmk_{id}_{secret}")
    }

    /// A code that claims one hub.
    pub async fn claim_code(&self) -> String {
        self.claim_code_for(1).await
    }

    pub async fn claim_code_for(&self, max_uses: u32) -> String {
        let body = json!({"maxUses": max_uses});
        let reply = self
            .client
            .post("/tenant/hubs/claim-codes")
            .json(&body)
            .call()
            .await
            .expect(200);
        reply.json()["data"]["claimCode"]
            .as_str()
            .expect("a claim code")
            .to_owned()
    }
}
