//! Follows a stream of the service until Ctrl-C.

use hub_client::{Event, Stream};
use serde_json::Value;

use crate::failure::Failure;
use crate::terminal::{Interrupt, note, short_time};
use crate::text::printable;

pub struct Following {
    stream: Stream,
    interrupt: Interrupt,
}

impl Following {
    /// Connects first, so that a wrong address or a missing permission fails at once.
    pub async fn open(mut stream: Stream) -> Result<Self, Failure> {
        stream.open().await?;
        Ok(Self {
            stream,
            interrupt: Interrupt::listen(),
        })
    }

    /// The next record, or none after Ctrl-C. Lost and resumed connections are noted.
    pub async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            let event = tokio::select! {
                event = self.stream.next() => event?,
                () = self.interrupt.pressed() => return Ok(None),
            };
            match event {
                Event::Record(record) => return Ok(Some(record)),
                Event::Lost { reason } => note(&format!(
                    "# connection lost: {}; trying again",
                    printable(&reason)
                )),
                Event::Resumed { after, lost_for } => {
                    let from = match after {
                        Some(time) => {
                            format!("events received after {} follow", short_time(time))
                        }
                        None => "events received in the meantime are not shown".to_owned(),
                    };
                    note(&format!(
                        "# connected again after {} s; {from}",
                        lost_for.as_secs()
                    ));
                }
            }
        }
    }
}
