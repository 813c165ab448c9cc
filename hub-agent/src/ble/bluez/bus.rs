//! One connection to the system bus: authenticates, makes calls, and delivers every message to a
//! listener. Reads everything that is available and then pauses briefly, so that a thousand signals
//! a second cause about sixteen wake-ups. Knows nothing of Bluetooth.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream as StdUnixStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::names::BUS;
use super::wire::{Kind, Malformed, Message, NO_REPLY_EXPECTED, Outgoing, Value};

const DEFAULT_ADDRESS: &str = "unix:path=/run/dbus/system_bus_socket";
const BUS_PATH: &str = "/org/freedesktop/DBus";
/// A bluetoothd that hangs must not hang the agent.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long signals are collected.
const REST: Duration = Duration::from_millis(60);
const READ_BYTES: usize = 64 << 10;
const MAX_READ_BYTES: usize = 16 * READ_BYTES;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("DBUS_SYSTEM_BUS_ADDRESS is {0:?}; only unix:path= and unix:abstract= are supported")]
    Address(String),
    #[error("cannot connect to {address}: {error}")]
    Connect { address: String, error: io::Error },
    #[error("the bus at {address} refuses this user: {answer}")]
    Refused { address: String, answer: String },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    #[error("{message} ({name})")]
    Remote { name: String, message: String },
    #[error("no answer within {} s", CALL_TIMEOUT.as_secs())]
    Timeout,
    #[error("the connection to the bus is lost")]
    Disconnected,
}

impl CallError {
    /// Whether the other side answered with this error, whatever its namespace.
    pub fn is(&self, error: &str) -> bool {
        matches!(self, Self::Remote { name, .. } if name.rsplit('.').next() == Some(error))
    }
}

/// A whole message.
#[derive(Debug)]
pub struct Reply(Vec<u8>);

impl Reply {
    /// The arguments of the answer; none if it is malformed.
    pub fn body(&self) -> Vec<Value<'_>> {
        match Message::parse(&self.0) {
            Ok(Some((message, _))) => message.body().unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}

type Answer = Result<Reply, CallError>;

/// The sending side; cheap to clone.
#[derive(Clone, Debug)]
pub struct Bus {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The socket. The runtime does not watch it while signals stream in: each would wake the
    /// runtime.
    stream: StdUnixStream,
    /// A lock that is held while a message is being written.
    writing: Mutex<()>,
    serial: AtomicU32,
    /// Calls that wait for their answers; `None` once the connection is lost.
    waiting: Mutex<Option<HashMap<u32, oneshot::Sender<Answer>>>>,
}

/// The receiving side.
#[derive(Debug)]
pub struct Incoming {
    shared: Arc<Shared>,
}

/// The address of the machine's system bus.
pub fn system_address() -> String {
    std::env::var("DBUS_SYSTEM_BUS_ADDRESS")
        .ok()
        .filter(|text| !text.is_empty())
        .unwrap_or(DEFAULT_ADDRESS.to_owned())
}

impl Bus {
    /// Connects and authenticates. Calls are answered only while `Incoming::run` runs; the first
    /// must be `hello`.
    pub async fn connect(address: &str) -> Result<(Self, Incoming), ConnectError> {
        let stream = connect_any(address).await?;
        let authenticated =
            tokio::time::timeout(AUTHENTICATION_TIMEOUT, authenticate(stream, address)).await;
        let stream = authenticated.unwrap_or_else(|_| {
            Err(ConnectError::Refused {
                address: address.to_owned(),
                answer: "it does not answer".to_owned(),
            })
        })?;
        let stream = stream.into_std().map_err(|error| ConnectError::Connect {
            address: address.to_owned(),
            error,
        })?;
        let shared = Arc::new(Shared {
            stream,
            writing: Mutex::new(()),
            serial: AtomicU32::new(1),
            waiting: Mutex::new(Some(HashMap::new())),
        });
        Ok((
            Self {
                shared: shared.clone(),
            },
            Incoming { shared },
        ))
    }

    /// Requests this connection's name. The bus serves no connection before that.
    pub async fn hello(&self) -> Result<(), CallError> {
        self.bus_call("Hello", "", &[]).await.map(drop)
    }

    pub async fn add_match(&self, rule: &str) -> Result<(), CallError> {
        self.bus_call("AddMatch", "s", &[Value::Str(rule)])
            .await
            .map(drop)
    }

    /// A call of the bus itself.
    pub async fn bus_call(&self, member: &str, signature: &str, body: &[Value<'_>]) -> Answer {
        self.call(BUS, BUS_PATH, BUS, member, signature, body).await
    }

    /// Each message of this connection has its own serial number.
    pub fn next_serial(&self) -> u32 {
        self.shared.next_serial()
    }

    pub async fn call(
        &self,
        destination: &str,
        path: &str,
        interface: &str,
        member: &str,
        signature: &str,
        body: &[Value<'_>],
    ) -> Answer {
        self.call_as(
            self.next_serial(),
            destination,
            path,
            interface,
            member,
            signature,
            body,
        )
        .await
    }

    /// A call with this serial number: the listener recognises its answer in its place among the
    /// signals.
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the parts of a D-Bus call"
    )]
    pub async fn call_as(
        &self,
        serial: u32,
        destination: &str,
        path: &str,
        interface: &str,
        member: &str,
        signature: &str,
        body: &[Value<'_>],
    ) -> Answer {
        let call = Outgoing {
            kind: Kind::Call,
            flags: 0,
            reply_serial: 0,
            destination,
            path,
            interface,
            member,
            error_name: "",
            signature,
            body,
        };
        let (sender, answer) = oneshot::channel();
        match &mut *self.shared.waiting() {
            Some(waiting) => waiting.insert(serial, sender),
            None => return Err(CallError::Disconnected),
        };
        self.shared.write(&call.encode(serial));
        let answer = tokio::time::timeout(CALL_TIMEOUT, answer).await;
        if let Some(waiting) = &mut *self.shared.waiting() {
            waiting.remove(&serial);
        }
        match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(CallError::Disconnected),
            Err(_) => Err(CallError::Timeout),
        }
    }

    /// Answers a call, if an answer is expected.
    pub fn reply(&self, to: &Message<'_>, answer: Result<(&str, &[Value<'_>]), &str>) {
        if to.flags & NO_REPLY_EXPECTED != 0 {
            return;
        }
        let (kind, error_name, signature, body) = match answer {
            Ok((signature, body)) => (Kind::Return, "", signature, body),
            Err(name) => (Kind::Error, name, "", &[][..]),
        };
        let reply = Outgoing {
            kind,
            flags: NO_REPLY_EXPECTED,
            reply_serial: to.serial,
            destination: to.sender,
            path: "",
            interface: "",
            member: "",
            error_name,
            signature,
            body,
        };
        self.shared.write(&reply.encode(self.shared.next_serial()));
    }
}

/// Processes what arrives, including answers to our own calls, in batches.
pub trait Listener: Send {
    fn batch(&mut self, messages: &[Message<'_>]);
}

impl Incoming {
    /// Reads until the connection is lost. Returns why it was.
    pub async fn run(self, mut listener: impl Listener) -> io::Error {
        let error = self.read(&mut listener).await;
        *self.shared.waiting() = None;
        error
    }

    async fn read(&self, listener: &mut impl Listener) -> io::Error {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let mut chunk = vec![0; READ_BYTES];
        loop {
            match self.fill(&mut buffer, &mut chunk) {
                Ok(true) => {}
                Ok(false) => {
                    if let Err(error) = self.readable().await {
                        return error;
                    }
                    continue;
                }
                Err(error) => return error,
            }
            match self.dispatch(&buffer, listener) {
                Ok(consumed) => drop(buffer.drain(..consumed)),
                Err(malformed) => return io::Error::new(io::ErrorKind::InvalidData, malformed),
            }
            if buffer.is_empty() && buffer.capacity() > 4 * READ_BYTES {
                buffer = Vec::with_capacity(READ_BYTES);
            }
            tokio::time::sleep(REST).await;
        }
    }

    /// Reads what is available, up to a bound. False if there was nothing.
    fn fill(&self, buffer: &mut Vec<u8>, chunk: &mut [u8]) -> io::Result<bool> {
        let before = buffer.len();
        while buffer.len() < before + MAX_READ_BYTES {
            match (&self.shared.stream).read(chunk) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the bus closed the connection",
                    ));
                }
                Ok(count) => buffer.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(buffer.len() > before)
    }

    /// Registers with the runtime only while there is nothing to read.
    async fn readable(&self) -> io::Result<()> {
        UnixStream::from_std(self.shared.stream.try_clone()?)?
            .readable()
            .await
    }

    fn dispatch(&self, buffer: &[u8], listener: &mut impl Listener) -> Result<usize, Malformed> {
        let mut consumed = 0;
        let mut messages = Vec::new();
        while let Some((message, length)) =
            Message::parse(buffer.get(consumed..).unwrap_or_default())?
        {
            if matches!(message.kind, Kind::Return | Kind::Error) {
                let whole = buffer.get(consumed..consumed + length).unwrap_or_default();
                self.shared.answer(&message, whole);
            }
            messages.push(message);
            consumed += length;
        }
        listener.batch(&messages);
        Ok(consumed)
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Option<HashMap<u32, oneshot::Sender<Answer>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_serial(&self) -> u32 {
        loop {
            let serial = self.serial.fetch_add(1, Ordering::Relaxed);
            if serial != 0 {
                return serial;
            }
        }
    }

    /// Writes the whole message. The socket's buffer has space for hundreds of messages: if one
    /// does not fit, the other side no longer reads. Then the connection is shut down, which the
    /// reader notices.
    fn write(&self, message: &[u8]) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if (&self.stream).write_all(message).is_err() {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    fn answer(&self, message: &Message<'_>, whole: &[u8]) {
        let waiting = self
            .waiting()
            .as_mut()
            .and_then(|waiting| waiting.remove(&message.reply_serial));
        // The caller of a late answer has stopped waiting.
        let Some(sender) = waiting else { return };
        let answer = if message.kind == Kind::Error {
            let body = message.body().unwrap_or_default();
            let text = body.first().and_then(Value::as_str).unwrap_or_default();
            Err(CallError::Remote {
                name: message.error_name.to_owned(),
                message: text.to_owned(),
            })
        } else {
            Ok(Reply(whole.to_vec()))
        };
        let _ = sender.send(answer);
    }
}

async fn connect_any(address: &str) -> Result<UnixStream, ConnectError> {
    let mut failed = None;
    for entry in address.split(';').filter(|entry| !entry.is_empty()) {
        match connect_one(entry).await {
            Ok(Some(stream)) => return Ok(stream),
            Ok(None) => {}
            Err(error) => {
                failed = Some(ConnectError::Connect {
                    address: entry.to_owned(),
                    error,
                })
            }
        }
    }
    Err(failed.unwrap_or_else(|| ConnectError::Address(address.to_owned())))
}

/// `None` if this kind of address is not supported.
async fn connect_one(entry: &str) -> io::Result<Option<UnixStream>> {
    let Some(options) = entry.strip_prefix("unix:") else {
        return Ok(None);
    };
    for option in options.split(',') {
        match option.split_once('=') {
            Some(("path", path)) => return UnixStream::connect(unescape(path)).await.map(Some),
            Some(("abstract", name)) => {
                let address = SocketAddr::from_abstract_name(unescape(name))?;
                let stream = StdUnixStream::connect_addr(&address)?;
                stream.set_nonblocking(true)?;
                return UnixStream::from_std(stream).map(Some);
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Percent-escapes of bus addresses.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.as_bytes());
        match after
            .split_at_checked(2)
            .and_then(|(digits, tail)| Some((u8::from_str_radix(digits, 16).ok()?, tail)))
        {
            Some((byte, tail)) => {
                bytes.push(byte);
                rest = tail;
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Authenticates as this user; the bus compares that with the kernel's information.
async fn authenticate(mut stream: UnixStream, address: &str) -> Result<UnixStream, ConnectError> {
    let connect = |error| ConnectError::Connect {
        address: address.to_owned(),
        error,
    };
    let user = hex::encode(rustix::process::geteuid().as_raw().to_string());
    stream
        .write_all(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())
        .await
        .map_err(connect)?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n") && answer.len() < 512 {
        // Byte by byte: what follows the line must not be read here. There is one such line per
        // connection.
        match stream.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(error) => return Err(connect(error)),
        }
    }
    if !answer.starts_with(b"OK ") {
        let answer = String::from_utf8_lossy(&answer).trim().to_owned();
        return Err(ConnectError::Refused {
            address: address.to_owned(),
            answer,
        });
    }
    stream.write_all(b"BEGIN\r\n").await.map_err(connect)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_escapes_are_decoded() {
        for (escaped, plain) in [
            ("/run/a%20b", "/run/a b"),
            ("%2Ftmp", "/tmp"),
            ("50%", "50%"),
            ("a%zzb", "a%zzb"),
        ] {
            assert_eq!(unescape(escaped), plain);
        }
    }

    #[tokio::test]
    async fn an_unsupported_address_is_reported() {
        let error = connect_any("tcp:host=localhost").await.unwrap_err();
        assert!(matches!(error, ConnectError::Address(_)), "{error}");
        let error = connect_any("unix:path=/nonexistent/bus,guid=1")
            .await
            .unwrap_err();
        assert!(error.to_string().contains("/nonexistent/bus"), "{error}");
    }
}
