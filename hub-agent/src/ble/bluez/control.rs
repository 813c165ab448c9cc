//! Occasional calls of BlueZ through `bluer`: which adapters exist, and their power. Each call has
//! a short session of its own, because bluer subscribes a session to every change of every device.
//! At a thousand advertisements a second such a subscription costs more than all processing by the
//! agent. What lasts as long as a scan (discovery, monitors, signals) is on the connection in
//! `bus`.

use std::time::Duration;

use bluer::{Adapter, ErrorKind, InternalErrorKind, Session};

use super::bus::{CALL_TIMEOUT, CallError, system_address};

/// How long a session may take beyond its one call, for authentication.
const SESSION_TIMEOUT: Duration = CALL_TIMEOUT.saturating_add(Duration::from_secs(5));

/// How far the survey came, and what it found.
#[derive(Debug)]
pub enum Survey {
    NoBus {
        address: String,
        reason: String,
    },
    /// No program owns the name `org.bluez`, and none could be started.
    NoDaemon,
    /// bluetoothd does not answer this user, or does not answer at all.
    Refused {
        denied: bool,
        reason: String,
    },
    Adapters(Vec<Surveyed>),
}

#[derive(Debug)]
pub struct Surveyed {
    pub name: String,
    pub address: String,
    pub powered: bool,
}

/// Lists the adapters. Changes nothing: does not scan, does not power anything on.
pub async fn survey() -> Survey {
    run(async || {
        let session = match Session::new().await {
            Ok(session) => session,
            Err(error) => {
                return Ok(Survey::NoBus {
                    address: system_address(),
                    reason: error.message,
                });
            }
        };
        let mut names = session.adapter_names().await?;
        names.sort_unstable();
        let mut adapters = Vec::with_capacity(names.len());
        for name in names {
            adapters.push(surveyed(&session.adapter(&name)?).await?);
        }
        Ok(Survey::Adapters(adapters))
    })
    .await
    .unwrap_or_else(|error| match &error {
        CallError::Remote { name, .. } if is_absence(name) => Survey::NoDaemon,
        _ => Survey::Refused {
            denied: error.is("AccessDenied"),
            reason: error.to_string(),
        },
    })
}

async fn surveyed(adapter: &Adapter) -> bluer::Result<Surveyed> {
    Ok(Surveyed {
        name: adapter.name().to_owned(),
        address: adapter.address().await?.to_string(),
        powered: adapter.is_powered().await?,
    })
}

/// Switches an adapter, such as `hci0`, on or off.
pub async fn set_powered(adapter_name: &str, on: bool) -> Result<(), CallError> {
    let adapter_name = adapter_name.to_owned();
    run(async move || {
        Session::new()
            .await?
            .adapter(&adapter_name)?
            .set_powered(on)
            .await
    })
    .await
}

/// Runs the call on a runtime of its own, which ends everything that bluer started: the tasks of a
/// session outlive it by half a minute, during which the bus would collect signals for them.
async fn run<T: Send + 'static>(
    call: impl AsyncFnOnce() -> bluer::Result<T> + Send + 'static,
) -> Result<T, CallError> {
    let running = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let result =
            runtime.block_on(async { tokio::time::timeout(SESSION_TIMEOUT, call()).await });
        runtime.shutdown_background();
        std::io::Result::Ok(result)
    });
    match running.await {
        Ok(Ok(Ok(result))) => result.map_err(call_error),
        Ok(Ok(Err(_))) => Err(CallError::Timeout),
        Ok(Err(_)) | Err(_) => Err(CallError::Disconnected),
    }
}

fn call_error(error: bluer::Error) -> CallError {
    let name = match error.kind {
        ErrorKind::NotFound => "org.freedesktop.DBus.Error.UnknownObject".to_owned(),
        ErrorKind::Internal(InternalErrorKind::DBus(name)) => name,
        kind => format!("org.bluez.Error.{kind:?}"),
    };
    CallError::Remote {
        name,
        message: error.message,
    }
}

/// No program owns the name, or the program that should own it could not be started.
fn is_absence(error: &str) -> bool {
    let of_the_bus = error.strip_prefix("org.freedesktop.DBus.Error.");
    of_the_bus.is_some_and(|name| {
        matches!(name, "ServiceUnknown" | "NameHasNoOwner") || name.starts_with("Spawn.")
    }) || error.starts_with("org.freedesktop.systemd1.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::mock;
    use super::*;

    #[tokio::test]
    async fn adapters_are_surveyed_and_switched() {
        let Some(mut mock) = mock() else { return };
        mock.order(json!({"cmd": "add_adapter", "address": "00:11:22:33:44:55", "powered": false}));
        mock.order(
            json!({"cmd": "add_adapter", "adapter": "hci1", "address": "00:11:22:33:44:66"}),
        );
        let Survey::Adapters(adapters) = survey().await else {
            panic!("there are adapters")
        };
        let found: Vec<_> = adapters
            .iter()
            .map(|found| (found.address.as_str(), found.powered))
            .collect();
        assert_eq!(
            found,
            [("00:11:22:33:44:55", false), ("00:11:22:33:44:66", true)]
        );
        set_powered("hci0", true).await.expect("it is switched on");
        assert_eq!(
            mock.order(json!({"cmd": "state"}))["adapters"]["hci0"]["powered"],
            json!(true)
        );

        mock.order(json!({"cmd": "fault", "call": "Powered", "error": "Blocked"}));
        assert!(
            set_powered("hci0", false)
                .await
                .is_err_and(|error| error.is("Blocked"))
        );
        assert!(
            set_powered("hci7", true)
                .await
                .is_err_and(|error| error.is("UnknownObject"))
        );
        mock.order(json!({"cmd": "stop_daemon", "crash": true}));
        assert!(matches!(survey().await, Survey::NoDaemon));
    }

    #[test]
    fn a_service_that_could_not_be_started_is_absent() {
        for (error, absent) in [
            ("org.freedesktop.DBus.Error.ServiceUnknown", true),
            ("org.freedesktop.DBus.Error.Spawn.ServiceNotValid", true),
            ("org.freedesktop.systemd1.NoSuchUnit", true),
            ("org.freedesktop.DBus.Error.AccessDenied", false),
            ("org.bluez.Error.Failed", false),
        ] {
            assert_eq!(is_absence(error), absent, "{error}");
        }
    }
}
