//! The claim code: generation, formatting and parsing. It is a secret: it has no `Display`, and its
//! `Debug` shows only the first group.

use hub_base::sealing;

/// Crockford's base 32, without I, L, O and U, which are easily misread.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const SYMBOLS: usize = 16;
const GROUP: usize = 4;

/// Sixteen symbols of Crockford's base 32: 80 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaimCode(String);

impl ClaimCode {
    pub fn generate() -> Self {
        let bits = sealing::random::<10>()
            .iter()
            .fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
        let symbol = |index: usize| {
            let value = (bits >> (5 * index)) & 31;
            ALPHABET
                .get(value as usize)
                .map_or('0', |symbol| char::from(*symbol))
        };
        Self((0..SYMBOLS).rev().map(symbol).collect())
    }

    /// Parses a code in any spelling: any case, with or without dashes and blanks, `O` for `0`, `I`
    /// and `L` for `1`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut symbols = String::with_capacity(SYMBOLS);
        for c in text.chars().filter(|c| !matches!(c, '-' | ' ')) {
            let symbol = match c.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                c => c,
            };
            let known = u8::try_from(symbol).is_ok_and(|byte| ALPHABET.contains(&byte));
            if !known || symbols.len() == SYMBOLS {
                return None;
            }
            symbols.push(symbol);
        }
        (symbols.len() == SYMBOLS).then_some(Self(symbols))
    }

    /// The code as `XXXX-XXXX-XXXX-XXXX`.
    pub fn spelled(&self) -> String {
        let mut text = String::with_capacity(SYMBOLS + SYMBOLS / GROUP - 1);
        for (index, symbol) in self.0.chars().enumerate() {
            if index > 0 && index % GROUP == 0 {
                text.push('-');
            }
            text.push(symbol);
        }
        text
    }

    /// The first group, as in `7K3M-…`: enough to recognise a code, too little to claim with.
    pub fn masked(&self) -> String {
        self.0.chars().take(GROUP).chain("-…".chars()).collect()
    }

    /// The lookup key in the database.
    pub fn hash(&self) -> Vec<u8> {
        sealing::hash(&self.0)
    }
}

impl std::fmt::Debug for ClaimCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.masked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_accepts_common_misspellings() {
        for _ in 0..100 {
            let code = ClaimCode::generate();
            let spelled = code.spelled();
            assert_eq!(spelled.len(), 19);
            assert_eq!(ClaimCode::parse(&spelled).as_ref(), Some(&code));
            assert_eq!(
                ClaimCode::parse(&spelled.to_lowercase().replace('-', "")).as_ref(),
                Some(&code)
            );
            let mistaken = spelled.replace('0', "o").replace('1', "L");
            assert_eq!(ClaimCode::parse(&mistaken), Some(code));
        }
    }

    #[test]
    fn malformed_codes_are_refused() {
        for text in [
            "",
            "7K3M",
            "7K3M-…",
            "7K3M-9QXT-0V4B-HD2R-1",
            "7K3M-9QXT-0V4B-HD2U",
            "7K3M-9QXT-0V4B-HD2\0",
            "7K3M-9QXT-0V4B-HD2é",
        ] {
            assert_eq!(ClaimCode::parse(text), None, "{text}");
        }
    }

    #[test]
    fn debug_output_masks_the_code() {
        let code = ClaimCode::parse("7K3M-9QXT-0V4B-HD2R").expect("a code");
        assert_eq!(format!("{code:?}"), "7K3M-…");
    }
}
