//! The second factor and the logins of the world's first owner.

use hub_base::db::{Sql, sql};
use hub_base::sealing::stored::SECOND_FACTOR_SECRET;
use serde_json::{Value, json};
use totp_rs::{Builder, Secret};
use uuid::Uuid;

use super::world::World;

const SECRET: &[u8] = b"twenty bytes of text";

impl World {
    async fn change(&self, statement: Sql) {
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        statement.run(&mut tx).await.expect("a statement");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
    }

    pub async fn forget_second_factor(&self) {
        for text in ["DELETE FROM recovery_codes", "DELETE FROM second_factors"] {
            self.change(sql(text)).await;
        }
    }

    /// A code of the owner's second factor, in force or to be confirmed.
    pub async fn second_factor(&self, is_confirmed: bool) -> Value {
        self.forget_second_factor().await;
        let (app, owner) = (&self.app.app, self.tenant.owner.login.user_uuid);
        let now = app.clock.now();
        let sealed = app
            .sealer
            .seal(SECOND_FACTOR_SECRET, &owner.to_string(), SECRET);
        let insert = "INSERT INTO second_factors (user_uuid, sealed_secret, created_at, \
                      confirmed_at) VALUES ($1, $2, $3, $4)";
        let confirmed_at = Some(now).filter(|_| is_confirmed);
        self.change(sql(insert).bind((owner, sealed, now, confirmed_at)))
            .await;
        let totp = Builder::new()
            .with_secret(Secret::new(SECRET.into()))
            .build_noncompliant();
        json!(totp.generate(now.as_secs().unsigned_abs()).to_string())
    }

    /// A login of the owner beside the one that asks.
    pub async fn session(&self) -> String {
        let (login_uuid, owner) = (Uuid::now_v7(), &self.tenant.owner.login);
        let now = self.app.app.clock.now();
        let insert = "INSERT INTO logins (login_uuid, user_uuid, persona_uuid, created_at, \
                      last_used_at, expires_at) VALUES ($1, $2, $3, $4, $4, $5)";
        let row = (
            login_uuid,
            owner.user_uuid,
            owner.persona_uuid,
            now,
            now.plus_secs(60),
        );
        self.change(sql(insert).bind(row)).await;
        login_uuid.to_string()
    }
}
