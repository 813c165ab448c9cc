//! Tells code, comments and string literals of a Rust file apart, as far as the rules need it.

/// A comment or a string literal, with its delimiters; it may span lines.
pub struct Piece {
    /// The line it begins on, from 1.
    pub line: usize,
    /// The column it begins in, from 0, in characters.
    pub column: usize,
    pub text: String,
}

impl Piece {
    /// Each line it covers, with the number of columns up to its end on that line.
    pub fn ends(&self) -> impl Iterator<Item = (usize, usize)> {
        self.text.split('\n').enumerate().map(|(index, part)| {
            let before = if index == 0 { self.column } else { 0 };
            (self.line + index, before + part.trim_end().chars().count())
        })
    }
}

pub struct Source {
    /// The file with comments, string and character literals replaced by blanks; line breaks stay.
    pub code: String,
    pub comments: Vec<Piece>,
    pub strings: Vec<Piece>,
}

enum Kind {
    Code,
    Comment,
    Literal,
}

impl Source {
    pub fn of(text: &str) -> Self {
        let mut source = Self {
            code: String::with_capacity(text.len()),
            comments: Vec::new(),
            strings: Vec::new(),
        };
        let (mut rest, mut line, mut column) = (text, 1, 0);
        let mut after_word = false;
        while let Some(first) = rest.chars().next() {
            let (kind, length) = next_piece(rest, after_word);
            let (piece, after) = rest.split_at(length);
            let found = || Piece {
                line,
                column,
                text: piece.to_owned(),
            };
            match kind {
                Kind::Code => source.code.push_str(piece),
                Kind::Comment => source.comments.push(found()),
                Kind::Literal => source.strings.push(found()),
            }
            if !matches!(kind, Kind::Code) {
                source
                    .code
                    .extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            }
            after_word = matches!(kind, Kind::Code) && (first.is_alphanumeric() || first == '_');
            match piece.rfind('\n') {
                Some(at) => {
                    line += piece.matches('\n').count();
                    column = piece[at + 1..].chars().count();
                }
                None => column += piece.chars().count(),
            }
            rest = after;
        }
        source
    }
}

/// What `rest` begins with, and its length in bytes. Code comes a character at a time.
fn next_piece(rest: &str, after_word: bool) -> (Kind, usize) {
    let first = rest.chars().next().map_or(0, char::len_utf8);
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if rest.starts_with('\'') {
        return character(rest).map_or((Kind::Code, first), |length| (Kind::Literal, length));
    }
    // A prefix is one only at the beginning of a word.
    let prefix = rest
        .find(|c: char| !matches!(c, 'b' | 'c' | 'r'))
        .filter(|length| *length <= 2)
        .unwrap_or(0);
    let prefix = if after_word { 0 } else { prefix };
    let (letters, literal) = rest.split_at(prefix);
    if letters.contains('r') {
        let hashes = literal.find(|c| c != '#').unwrap_or(0);
        if literal[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 1;
            let length = literal[begin..]
                .find(&end)
                .map_or(literal.len(), |at| begin + at + end.len());
            return (Kind::Literal, prefix + length);
        }
    } else if literal.starts_with('"') {
        return (Kind::Literal, prefix + string(literal));
    } else if letters == "b" && literal.starts_with('\'') {
        return character(literal).map_or((Kind::Code, first), |length| {
            (Kind::Literal, prefix + length)
        });
    }
    (Kind::Code, first)
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    for (at, _) in rest.char_indices() {
        if rest[at..].starts_with("/*") {
            depth += 1;
        } else if rest[..at].ends_with("*/") && at > 2 {
            depth -= 1;
            if depth == 0 {
                return at;
            }
        }
    }
    rest.len()
}

fn string(literal: &str) -> usize {
    let mut escaped = false;
    for (at, c) in literal.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    literal.len()
}

/// The length of a character literal; none when the quote begins a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        chars.next();
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    chars
        .next()
        .filter(|(_, c)| *c == '\'')
        .map(|(at, _)| at + 1)
}

#[test]
fn literals_and_comments_are_told_from_code() {
    let text = r##"let a = "x // \" y"; // one "two"
let b = r#"raw " /* "#; /* a /* nested */ 'b' */ let c = '"'; let d: &'static str = b"\"";
let e = 'x'; let for_r = r"\"; let f = '\u{7f}'; fn g<'a>(x: &'a str) {}
"##;
    let source = Source::of(text);
    let code: Vec<_> = source.code.split_whitespace().collect();
    let expected = "let a = ; let b = ; let c = ; let d: &'static str = ; \
                    let e = ; let for_r = ; let f = ; fn g<'a>(x: &'a str) {}";
    assert_eq!(code.join(" "), expected);
    let comments: Vec<_> = source
        .comments
        .iter()
        .map(|comment| (comment.line, comment.text.as_str()))
        .collect();
    assert_eq!(
        comments,
        [(1, "// one \"two\""), (2, "/* a /* nested */ 'b' */")]
    );
    let strings: Vec<_> = source
        .strings
        .iter()
        .map(|string| string.text.as_str())
        .collect();
    let expected = [
        r#""x // \" y""#,
        r##"r#"raw " /* "#"##,
        "'\"'",
        r#"b"\"""#,
        "'x'",
        r#"r"\""#,
        r"'\u{7f}'",
    ];
    assert_eq!(strings, expected);
}

#[test]
fn a_piece_knows_how_wide_each_of_its_lines_is() {
    let source = Source::of("let a = \"é\n  xy  \n\";");
    assert_eq!(
        source.strings[0].ends().collect::<Vec<_>>(),
        [(1, 10), (2, 4), (3, 1)]
    );
}
