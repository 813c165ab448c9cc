//! What belongs to another tenant does not exist, and a hub is nobody but itself.

use hub_tests::{Call, Reply, SimulatedHub, backends};

use super::document::operations;
use super::world::{Objects, World};

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_objects_answer_as_ones_that_do_not_exist() {
    for backend in backends() {
        let world = World::new(backend).await;
        let mut tried = 0;
        for operation in operations() {
            if !operation.access().starts_with("tenant:") || operation.path_parameters().is_empty() {
                continue;
            }
            // A header that contradicts the path is another matter: where the path names the tenant, the header is left out.
            let (stranger, owner) = match operation.path.contains("{tenantUuid}") {
                true => (&world.other.owner.client, &world.tenant.owner.client),
                false => (&world.other.client, &world.tenant.client),
            };
            let foreign = world.request(stranger, &operation, Objects::Real).await.call().await.expect(404);
            let unknown = world.request(stranger, &operation, Objects::Unknown).await.call().await.expect(404);
            assert_eq!(without_id(&foreign), without_id(&unknown), "{}", operation.name());
            let own = world.request(owner, &operation, Objects::Real).await.call().await;
            assert!(own.status.is_success(), "the owner's own: {} {}: {}", own.asked, own.status, own.body);
            tried += 1;
        }
        assert!(tried > 5, "only {tried} operations have an object in their path");
    }
}

/// All of the answer that a caller could tell two cases apart by.
fn without_id(reply: &Reply) -> (String, String, Vec<String>) {
    let problem = reply.problem();
    let headers = reply.headers.keys().map(|name| name.to_string()).collect();
    (problem.code, problem.message, headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_show_nothing_of_another_tenant() {
    for backend in backends() {
        let world = World::new(backend).await;
        let marks = [world.hub.hub_uuid.to_string(), world.tenant.tenant_uuid.to_string()];
        let mut seen_by_owner = 0;
        for operation in operations() {
            let is_list = operation.method == "GET" && operation.path_parameters().is_empty();
            if !is_list || !operation.path.starts_with("/tenant/") {
                continue;
            }
            let to_stranger = world.other.client.get(&operation.path).call().await.expect(200).body;
            let leak = marks.iter().find(|mark| to_stranger.contains(*mark));
            assert_eq!(leak, None, "{} shows another tenant's: {to_stranger}", operation.name());
            let to_owner = world.tenant.client.get(&operation.path).call().await.expect(200).body;
            seen_by_owner += usize::from(marks.iter().any(|mark| to_owner.contains(mark)));
        }
        assert!(seen_by_owner >= 3, "only {seen_by_owner} lists show the owner their own");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_acts_for_no_other_hub() {
    for backend in backends() {
        let world = World::new(backend).await;
        let neighbour = SimulatedHub::claim(&world.tenant).await;
        let mut tried = 0;
        for operation in operations() {
            if operation.access() != "hub" || !operation.path.contains("{hubUuid}") {
                continue;
            }
            let reply = world.request(&neighbour.client, &operation, Objects::Real).await.call().await.expect(403);
            assert_eq!(reply.problem().code, "OTHER_HUB");
            let unknown = world.request(&neighbour.client, &operation, Objects::Unknown).await.call().await;
            unknown.expect(403);
            tried += 1;
        }
        assert!(tried >= 3, "only {tried} operations name the hub");
    }
}
