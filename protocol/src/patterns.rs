//! Regular expressions (ECMA-262) that describe in schemas what text fields accept. They state what
//! validation does, and are never used to validate.

/// One line of text: no control characters.
pub const LINE: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";
/// One line of text that is not blank.
pub const FILLED_LINE: &str =
    r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
/// Text of several lines: no control characters but line ends and tabs.
pub const LINES: &str = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$";
/// A Bluetooth address such as `AA:BB:CC:DD:EE:FF`.
pub const ADDRESS: &str = "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$";
/// A company identifier: 4 lower-case hex digits.
pub const COMPANY: &str = "^[0-9a-f]{4}$";
/// A 16-bit service UUID in 4 lower-case hex digits, or a longer one in full.
pub const SERVICE: &str = "^([0-9a-f]{4}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$";
/// A time of the day such as `02:30`.
pub const TIME_OF_DAY: &str = "^([01][0-9]|2[0-3]):[0-5][0-9]$";
/// A claim code, however it is spelled.
pub const CLAIM_CODE: &str = "^[- ]*([0-9A-TV-Za-tv-z][- ]*){16}$";
/// A word for URLs and file names, such as a channel.
pub const WORD: &str = "^[a-z0-9_-]{1,64}$";
/// The name of an app.
pub const APP_NAME: &str = "^[a-z0-9][a-z0-9-]{0,63}$";
/// A semantic version (semver.org).
pub const VERSION: &str = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(\+([0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*))?$";
/// A SHA-256 digest in lower-case hex.
pub const SHA256: &str = "^[0-9a-f]{64}$";
