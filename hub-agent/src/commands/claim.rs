//! `hub-agent claim`: has the running agent claim the hub, or does it itself when none runs.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;

use crate::clock::Clock;
use crate::cloud::Service;
use crate::config::ClaimArgs;
use crate::control::{self, ClaimReply};
use crate::error::Failure;
use crate::identity::StateDir;
use crate::spool::{Spool, SpoolConfig};

pub async fn claim(args: ClaimArgs) -> Result<(), Failure> {
    let code = read_code(&args)?;
    let reply = match control::ask_claim(&args.common.state_dir, &code)? {
        Some(reply) => reply,
        None => claim_alone(&args, &code).await?,
    };
    let hub_uuid = reply.into_result()?;
    let outcome = format!("this hub is claimed: {hub_uuid}");
    // The code is used up: what came of it is said one way or the other.
    super::print(&format!("{outcome}\n")).map_err(|failure| Failure::Failed(format!("{outcome}; {failure}")))
}

fn read_code(args: &ClaimArgs) -> Result<SecretString, Failure> {
    let text = match (&args.code, args.code_file.as_deref()) {
        (Some(code), _) => return Ok(code.clone()),
        (None, Some(path)) if path == Path::new("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        (None, Some(path)) => std::fs::read_to_string(path),
        (None, None) => return Err(Failure::Failed("give --code or --code-file".into())),
    };
    let text = text.map_err(|error| Failure::Failed(format!("cannot read the claim code: {error}")))?;
    Ok(SecretString::from(text.trim().to_owned()))
}

async fn claim_alone(args: &ClaimArgs, code: &SecretString) -> Result<ClaimReply, Failure> {
    let state_dir = Arc::new(StateDir::open(&args.common.state_dir)?);
    let clock = Arc::new(Clock::new());
    let service = Service::new(&args.service, state_dir.clone(), clock.clone())?;
    // What an earlier run heard for an owner the hub no longer has is dropped with the claim.
    let spool = Spool::start(SpoolConfig::of(state_dir.path()), clock, || {})
        .map_err(|error| Failure::Failed(format!("the spool cannot be opened: {error}")))?;
    let claimed = service.claim(code, &spool).await.map(|credentials| credentials.hub_uuid);
    spool.close().await.map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(ClaimReply::from(claimed))
}
