//! Finds the paths that a Rust file writes: `use` trees, and paths inside code. What `#[cfg(test)]`
//! applies to is left out. Resolves nothing.

use super::source::Source;

/// A path as written: `crate::a::b`, `super::c`, `d::E`.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    pub segments: Vec<String>,
    /// The modules inside the file that it is written in.
    pub inside: Vec<String>,
    /// The name that a `use` gives to it in this file.
    pub name: Option<String>,
}

#[derive(Default)]
pub struct Imports {
    pub paths: Vec<Written>,
    /// `mod name;`
    pub children: Vec<String>,
    /// `#[cfg(test)] mod name;`
    pub test_children: Vec<String>,
    /// Whether the file holds anything but declarations of its modules.
    pub has_items: bool,
}

const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

impl Imports {
    pub fn of(text: &str) -> Self {
        let mut found = Self::default();
        let tokens = found.without_tests(tokens(&Source::of(text).code));
        let (mut depth, mut at) = (0, 0);
        let mut inside: Vec<(String, usize)> = Vec::new();
        let token = |at: usize| tokens.get(at).map_or("", String::as_str);
        let is_declaration = |item: &[String]| matches!(item, [.., word, _] if word == "mod");
        found.has_items = !tokens
            .split(|token| token == ";")
            .all(|item| item.is_empty() || is_declaration(item));
        while at < tokens.len() {
            let (before, next) = (if at == 0 { "" } else { token(at - 1) }, token(at + 1));
            match token(at) {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inside.retain(|(_, outer)| *outer < depth);
                }
                "mod" if token(at + 2) == "{" => inside.push((next.to_owned(), depth)),
                "mod" if token(at + 2) == ";" => found.children.push(next.to_owned()),
                "use" if is_word(next) || next == "{" => {
                    let inside: Vec<String> = inside.iter().map(|(name, _)| name.clone()).collect();
                    at = use_tree(&tokens, at + 1, &[], &mut |segments, name| {
                        found.paths.push(Written {
                            segments,
                            inside: inside.clone(),
                            name,
                        });
                    });
                    continue;
                }
                word if is_word(word) && next == "::" && before != "::" => {
                    let mut segments = vec![word.to_owned()];
                    while token(at + 1) == "::" && is_word(token(at + 2)) {
                        at += 2;
                        segments.push(token(at).to_owned());
                    }
                    // `pub(in path)` says who sees an item, and uses nothing.
                    if before != "in" || token(at + 1) != ")" {
                        let inside = inside.iter().map(|(name, _)| name.clone()).collect();
                        found.paths.push(Written {
                            segments,
                            inside,
                            name: None,
                        });
                    }
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Drops each item with `#[cfg(test)]` before it.
    fn without_tests(&mut self, tokens: Vec<String>) -> Vec<String> {
        let mut kept = Vec::with_capacity(tokens.len());
        let mut at = 0;
        while at < tokens.len() {
            if !tokens[at..].iter().take(CFG_TEST.len()).eq(CFG_TEST.iter()) {
                kept.push(tokens[at].clone());
                at += 1;
                continue;
            }
            at += CFG_TEST.len();
            while tokens[at..].starts_with(&["#".to_owned(), "[".to_owned()]) {
                at = end_of_attribute(&tokens, at);
            }
            let end = end_of_item(&tokens, at);
            if let [.., word, name, semicolon] = &tokens[at..end]
                && word == "mod"
                && semicolon == ";"
            {
                self.test_children.push(name.clone());
            }
            at = end;
        }
        kept
    }
}

/// The position behind an item that begins at `at`: behind its `;`, or behind its closing brace.
fn end_of_item(tokens: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        // Below zero, the braces around the item end.
        if depth < 0 {
            return index;
        }
        if depth == 0 && matches!(token.as_str(), "}" | ";") {
            return index + 1;
        }
    }
    tokens.len()
}

/// The position behind the attribute that begins at `at`.
fn end_of_attribute(tokens: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.as_str() {
            "[" => depth += 1,
            "]" if depth == 1 => return index + 1,
            "]" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Reads a `use` tree and returns the position behind it.
fn use_tree(
    tokens: &[String],
    mut at: usize,
    prefix: &[String],
    found: &mut impl FnMut(Vec<String>, Option<String>),
) -> usize {
    let mut segments = prefix.to_vec();
    let mut name = None;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = use_tree(tokens, at, &segments, found);
                    if tokens.get(at).is_some_and(|token| token == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "*" => {
                found(segments, None);
                return at + 1;
            }
            "as" => {
                name = tokens.get(at + 1).cloned();
                at += 1;
            }
            "," | "}" | ";" => break,
            "::" => {}
            word => segments.push(word.to_owned()),
        }
        at += 1;
    }
    if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let name = name.or_else(|| segments.last().cloned());
    found(segments, name);
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::`, and all other characters one by one.
fn tokens(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if in_word(first) {
            rest.find(|c| !in_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        found.push(token.to_owned());
        rest = after.trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        Imports::of(text)
            .paths
            .into_iter()
            .map(|path| path.segments.join("::"))
            .collect()
    }

    #[test]
    fn nested_use_trees_are_expanded() {
        let found = paths("use crate::{a, b::{self, c as d, e::*}, f::g::H,};\npub use super::x;");
        assert_eq!(
            found,
            [
                "crate::a",
                "crate::b",
                "crate::b::c",
                "crate::b::e",
                "crate::f::g::H",
                "super::x"
            ]
        );
    }

    #[test]
    fn a_use_gives_a_name() {
        let names = Imports::of("use crate::b::{self, c as d};")
            .paths
            .into_iter()
            .map(|path| path.name);
        assert_eq!(names.flatten().collect::<Vec<_>>(), ["b", "d"]);
    }

    #[test]
    fn paths_inside_code_are_found() {
        let text = "fn f(x: crate::a::B<super::c::D>) -> impl Tr + use<'_> { $crate::e::f!(x); g.h(); i::<J>() }";
        assert_eq!(
            paths(text),
            ["crate::a::B", "super::c::D", "crate::e::f", "i"]
        );
    }

    #[test]
    fn comments_strings_visibilities_and_test_items_are_left_out() {
        let text = r#"
            // crate::a::b
            const A: &str = "crate::c::d";
            pub(in crate::e) fn f() {}
            #[cfg(test)]
            #[allow(dead_code)]
            mod tests { use crate::g::h; fn i() -> [u8; 3] { crate::j::k() } }
            #[cfg(test)]
            mod more_tests;
            #[cfg(test)]
            use crate::l::{m, n};
            mod child;
            fn o() { crate::p::q() }
        "#;
        assert_eq!(paths(text), ["crate::p::q"]);
        let found = Imports::of(text);
        assert_eq!(
            (found.children, found.test_children),
            (vec!["child".to_owned()], vec!["more_tests".to_owned()])
        );
    }

    #[test]
    fn declarations_of_modules_are_no_items() {
        assert!(
            !Imports::of("//! Text.\npub mod a;\npub(crate) mod b;\n#[cfg(test)]\nmod tests {}\n")
                .has_items
        );
        assert!(Imports::of("mod a;\nconst B: u8 = 1;").has_items);
        assert!(Imports::of("mod a { fn b() {} }").has_items);
    }

    #[test]
    fn a_path_knows_the_module_it_is_written_in() {
        let found =
            Imports::of("mod a { mod b { use super::x; } use super::y; } use self::z;").paths;
        let found: Vec<_> = found
            .into_iter()
            .map(|path| (path.segments.join("::"), path.inside.join("::")))
            .collect();
        let expected = [("super::x", "a::b"), ("super::y", "a"), ("self::z", "")];
        assert_eq!(
            found,
            expected.map(|(path, inside)| (path.to_owned(), inside.to_owned()))
        );
    }
}
