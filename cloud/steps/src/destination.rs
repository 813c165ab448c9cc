//! How destinations are written and drawn. Which kinds there are, and what their members mean, is
//! known to those who send.

/// A kind of destination.
#[derive(Clone, Copy, Debug)]
pub struct DestinationForm {
    /// The `kind` of its definition. Its line in a text begins with it in small letters.
    pub kind: &'static str,
    /// What may follow the URL in that line, by the first word.
    pub options: &'static [(&'static str, OptionForm)],
    /// An option that must be there.
    pub required: Option<&'static str>,
}

/// The member of a definition that an option sets.
#[derive(Clone, Copy, Debug)]
pub enum OptionForm {
    /// To the option itself, in capitals.
    Itself(&'static str),
    /// To true.
    Flag(&'static str),
    /// To the word that follows.
    Text(&'static str),
    /// To the whole number that follows.
    Whole(&'static str),
    /// To the seconds of the time that follows.
    Time(&'static str),
}
