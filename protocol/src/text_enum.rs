//! Enums that are stored as text. The text is the same in a database and on the wire.

/// Defines the text of an enum: `ALL`, `name()`, `from_name()` and the conversion used for database
/// rows. The match in `name()` fails to compile if a variant is missing.
#[macro_export]
macro_rules! text_enum {
    ($type:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        impl $type {
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(name: String) -> Result<Self, String> {
                Self::from_name(&name).ok_or_else(|| format!("{name:?} is not a {}", stringify!($type)))
            }
        }
    };
}
