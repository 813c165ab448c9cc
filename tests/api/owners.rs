//! A tenant keeps an OWNER, whatever its owners do to each other at the same moment.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_protocol::PersonaUuid;
use hub_tests::{Backend, Call, Client, Options, Person, Reply, Tenant, TestApp, on_each_database};
use serde_json::json;

/// An owner, their persona in the tenant, and the replica they talk to.
struct Owner {
    persona_uuid: PersonaUuid,
    client: Client,
}

struct Place {
    app: TestApp,
    #[expect(dead_code, reason = "serves the second owner")]
    replica: Option<TestApp>,
    far: String,
}

impl Place {
    async fn new(backend: Backend) -> Self {
        let app = TestApp::new(backend).await;
        let replica = match backend {
            Backend::Postgres => Some(TestApp::replica_of(&app, Options::default()).await),
            Backend::Sqlite => None,
        };
        let far = replica.as_ref().unwrap_or(&app).url.clone();
        Self { app, replica, far }
    }

    /// A tenant with two owners, each at a replica.
    async fn two_owners(&self, people: &[Person; 2]) -> (Tenant, Owner, Owner) {
        let tenant = Tenant::create_by(&people[0]).await;
        let first = tenant.let_in(&people[0], Role::Owner).await;
        let second = tenant.let_in(&people[1], Role::Owner).await;
        let first = Owner {
            persona_uuid: first,
            client: people[0].client.clone(),
        };
        let second = Owner {
            persona_uuid: second,
            client: people[1].client.at(&self.far),
        };
        (tenant, first, second)
    }

    async fn owners(&self, tenant: &Tenant) -> i64 {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        let query = sql("SELECT COUNT(*) FROM personas WHERE tenant_uuid = $1 AND role = 'OWNER'");
        let (count,): (i64,) = query
            .bind(tenant.tenant_uuid)
            .one(&mut conn)
            .await
            .expect("a count");
        count
    }
}

async fn remove(by: &Owner, tenant: &Tenant, whom: &Owner) -> Reply {
    by.client
        .delete(&format!(
            "/tenant/tenants/{}/members/{}",
            tenant.tenant_uuid, whom.persona_uuid
        ))
        .call()
        .await
}

async fn demote(by: &Owner, tenant: &Tenant, whom: &Owner) -> Reply {
    let body = json!({"personaUuid": whom.persona_uuid, "role": "VIEWER"});
    by.client
        .post(&format!("/tenant/tenants/{}/members", tenant.tenant_uuid))
        .json(&body)
        .call()
        .await
}

/// One went through, the other was refused for a reason.
#[track_caller]
fn one_of(what: &str, replies: [Reply; 2]) {
    let succeeded = replies.iter().filter(|reply| reply.status == 200).count();
    let refused = replies
        .iter()
        .filter(|reply| matches!(reply.status.as_u16(), 403 | 404 | 409))
        .count();
    assert_eq!((succeeded, refused), (1, 1), "{what}: {replies:#?}");
}

on_each_database!(two_owners_who_remove_each_other_leave_one_owner);
async fn two_owners_who_remove_each_other_leave_one_owner(backend: Backend) {
    let place = Place::new(backend).await;
    let anyone = place.app.client();
    let people = [
        Person::register(&anyone).await,
        Person::register(&anyone).await,
    ];
    for _ in 0..4 {
        let (tenant, a, b) = place.two_owners(&people).await;
        let (first, second) = tokio::join!(remove(&a, &tenant, &b), remove(&b, &tenant, &a));
        one_of("removing each other", [first, second]);
        assert_eq!(place.owners(&tenant).await, 1);

        let (tenant, a, b) = place.two_owners(&people).await;
        let (first, second) = tokio::join!(demote(&a, &tenant, &b), demote(&b, &tenant, &a));
        one_of("demoting each other", [first, second]);
        assert_eq!(place.owners(&tenant).await, 1);

        let (tenant, a, b) = place.two_owners(&people).await;
        let (first, second) = tokio::join!(remove(&a, &tenant, &b), demote(&b, &tenant, &a));
        one_of("removing and demoting each other", [first, second]);
        assert_eq!(place.owners(&tenant).await, 1);

        let (tenant, a, b) = place.two_owners(&people).await;
        let (first, second) = tokio::join!(remove(&a, &tenant, &a), demote(&b, &tenant, &b));
        one_of("both leaving", [first, second]);
        assert_eq!(place.owners(&tenant).await, 1);
    }
}

on_each_database!(concurrent_transfer_and_removal_leave_an_owner);
async fn concurrent_transfer_and_removal_leave_an_owner(backend: Backend) {
    let place = Place::new(backend).await;
    let anyone = place.app.client();
    let people = [
        Person::register(&anyone).await,
        Person::register(&anyone).await,
    ];
    let heir = Person::register(&anyone).await;
    for round in 0..6 {
        let (tenant, a, b) = place.two_owners(&people).await;
        let request_uuid = tenant
            .offer(&json!({"targetPersonaUuid": heir.login.persona_uuid}))
            .await;
        let accept = heir
            .client
            .at(&place.far)
            .post(&format!("/tenant/transfer-requests/{request_uuid}/accept"));
        let (accepted, first, second) = match round % 2 {
            0 => tokio::join!(
                accept.call(),
                remove(&a, &tenant, &b),
                remove(&b, &tenant, &a)
            ),
            _ => tokio::join!(
                accept.call(),
                demote(&b, &tenant, &a),
                demote(&a, &tenant, &a)
            ),
        };
        for reply in [&accepted, &first, &second] {
            assert!(
                matches!(reply.status.as_u16(), 200 | 403 | 404 | 409),
                "{reply:?}"
            );
        }
        let owners = place.owners(&tenant).await;
        assert!(
            owners >= 1,
            "{owners} owners: {accepted:?} {first:?} {second:?}"
        );
        let members = heir
            .client
            .get(&format!("/tenant/tenants/{}/members", tenant.tenant_uuid))
            .call()
            .await;
        assert_eq!(
            members.status == 200,
            accepted.status == 200,
            "who accepted is in, and who could not is not"
        );
    }
}
