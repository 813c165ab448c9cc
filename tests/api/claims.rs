//! `/tenant/hubs/claim-codes`, `/v1/hubs/claim`.

use std::time::Instant;

use futures_util::future::join_all;
use hub_tests::{Call, Tenant, TestApp, backends};
use serde_json::json;

/// Two thousand hubs, one code for a thousand of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_those_who_race_for_a_code_as_many_win_as_it_has_uses() {
    const HUBS: usize = 2000;
    const USES: u32 = 1000;
    for backend in backends() {
        let app = TestApp::new(backend).await;
        let tenant = Tenant::create(&app.client()).await;
        let code = tenant.claim_code_for(USES).await;
        let anyone = app.client();
        let began = Instant::now();
        let claims = (0..HUBS).map(|hub| {
            let body = json!({"claimCode": code, "deviceInstanceId": format!("hub-{hub}")});
            anyone.post("/v1/hubs/claim").json(&body).call()
        });
        let replies = join_all(claims).await;
        println!("{HUBS} claims on {backend}: {:?}", began.elapsed());
        let won = replies.iter().filter(|reply| reply.status == 201).count();
        assert_eq!(won, USES as usize);
        for reply in replies.iter().filter(|reply| reply.status != 201) {
            assert_eq!(reply.status, 400, "{}", reply.body);
            assert_eq!(reply.problem().code, "CLAIM_CODE_USED_UP");
        }
    }
}
