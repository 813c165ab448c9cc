//! How wide comments and SQL are.

use std::path::Path;

use super::source::{Piece, Source};

/// A line, and how many columns it has.
type Wide = (usize, usize);

/// A comment is measured to its end. One long word, such as a URL, cannot be wrapped.
pub fn wide_comments(source: &Source, max: usize) -> Vec<Wide> {
    let mut found = Vec::new();
    for comment in &source.comments {
        for ((line, columns), text) in comment.ends().zip(comment.text.split('\n')) {
            if columns > max && !is_one_word(text) {
                found.push((line, columns));
            }
        }
    }
    found
}

pub fn wide_sql(source: &Source, max: usize) -> Vec<Wide> {
    let statements = source.strings.iter().filter(|string| is_sql(&string.text));
    statements
        .flat_map(Piece::ends)
        .filter(|(_, columns)| *columns > max)
        .collect()
}

/// Whether the file is a script with `#` comments: by its name, or by its first line.
pub fn is_script(path: &Path, text: &str) -> bool {
    let by_name = ["sh", "py"];
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    text.starts_with("#!") || by_name.contains(&extension)
}

pub fn wide_script_comments(text: &str, max: usize) -> impl Iterator<Item = Wide> {
    let numbered = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    let comments =
        numbered.filter(|(_, line)| line.trim_start().starts_with('#') && !is_one_word(line));
    comments
        .map(|(number, line)| (number, line.trim_end().chars().count()))
        .filter(move |(_, columns)| *columns > max)
}

fn is_one_word(comment: &str) -> bool {
    comment
        .trim()
        .trim_start_matches(['/', '!', '*', '#'])
        .split_whitespace()
        .count()
        <= 1
}

/// Whether a literal holds a statement: SQL is written in capitals.
fn is_sql(literal: &str) -> bool {
    let words: Vec<&str> = literal
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    let has = |word: &str| words.contains(&word);
    (has("SELECT") && literal.contains("SELECT "))
        || (has("WITH") && has("AS"))
        || (has("INSERT") && has("INTO"))
        || (has("UPDATE") && has("SET"))
        || (has("DELETE") && has("FROM"))
}

#[test]
fn wide_lines_are_found() {
    let long = "word ".repeat(30);
    let source = Source::of(&format!(
        "// {long}\nlet a = 1; // {long}\n/// https://{}\n// short\n/* ok\n {long} */\n",
        "x".repeat(200)
    ));
    let lines: Vec<_> = wide_comments(&source, 100)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [1, 2, 6]);
}

#[test]
fn wide_sql_is_found_and_other_text_is_not() {
    let long = "column_name, ".repeat(10);
    let source = Source::of(&format!(
        "a(\"SELECT {long} FROM hubs\");\nb(\"{long}\");\n\
         c(\"UPDATE hubs \\\n SET {long}\");\nd(\"SELECT 1\");\n\
         e(\"WITH old AS (\n{long}\n)\");\nf(\"with UPDATE alone {long}\");\n"
    ));
    let lines: Vec<_> = wide_sql(&source, 100)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [1, 4, 7]);
}

#[test]
fn wide_comments_of_scripts_are_found() {
    let long = "word ".repeat(30);
    let text = format!("#!/bin/bash\n# {long}\necho '{long}'\n  # {long}\n# short\n");
    assert!(is_script(Path::new("tests/run"), &text));
    assert!(!is_script(Path::new("README.md"), "# Title\n"));
    assert_eq!(
        wide_script_comments(&text, 100)
            .map(|(line, _)| line)
            .collect::<Vec<_>>(),
        [2, 4]
    );
}
