//! From the text of an expression to its compiled form. Types are checked on the way.

use super::MAX_SOURCE;
use super::functions::{self, Function};
use super::lex::{What, Word, words};
use super::names::{Names, unknown};
use super::node::{Arithmetic, Compare, Node};
use super::path::{MAX_SEGMENTS, Path, Segment};
use super::value::Types;

/// How deep an expression may be, in brackets and in operations.
const MAX_DEPTH: usize = 64;
/// Parts of an expression.
const MAX_NODES: usize = 1000;

/// A compiled part.
struct Part {
    at: usize,
    node: Node,
    types: Types,
    depth: usize,
}

struct Parser<'a> {
    source: &'a str,
    names: &'a Names,
    words: Vec<Word>,
    next: usize,
    level: usize,
    nodes: usize,
}

type Parsed = Result<Part, String>;

/// Compiles a whole text.
pub fn whole(source: &str, names: &Names) -> Result<(Node, Types), String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("must have {MAX_SOURCE} bytes or less"));
    }
    let words = words(source).map_err(|(at, problem)| placed(source, at, &problem))?;
    if words.is_empty() {
        return Err("must not be empty".to_owned());
    }
    let mut parser = Parser {
        source,
        names,
        words,
        next: 0,
        level: 0,
        nodes: 0,
    };
    let part = parser.either()?;
    match parser.words.get(parser.next) {
        None => Ok((part.node, part.types)),
        Some(word) => Err(placed(
            source,
            word.at,
            "an operator, or the end, is missing here",
        )),
    }
}

/// A problem with its column.
fn placed(source: &str, at: usize, problem: &str) -> String {
    let column = source.get(..at).map_or(0, |before| before.chars().count()) + 1;
    format!("column {column}: {problem}")
}

impl Parser<'_> {
    fn at(&self) -> usize {
        self.words
            .get(self.next)
            .map_or(self.source.len(), |word| word.at)
    }

    fn failed<T>(&self, at: usize, problem: &str) -> Result<T, String> {
        Err(placed(self.source, at, problem))
    }

    fn is_sign(&mut self, wanted: &str) -> bool {
        let is = matches!(self.words.get(self.next), Some(Word { what: What::Sign(sign), .. }) if *sign == wanted);
        self.next += usize::from(is);
        is
    }

    fn is_word(&mut self, wanted: &str) -> bool {
        let is = matches!(self.words.get(self.next), Some(Word { what: What::Name(name), .. }) if name == wanted);
        self.next += usize::from(is);
        is
    }

    fn sign(&mut self, wanted: &str) -> Result<(), String> {
        let at = self.at();
        match self.is_sign(wanted) {
            true => Ok(()),
            false => self.failed(at, &format!("`{wanted}` is missing here")),
        }
    }

    /// A part above others.
    fn part(&mut self, at: usize, node: Node, types: Types, below: usize) -> Parsed {
        self.nodes += 1;
        if below >= MAX_DEPTH {
            return self.failed(at, &format!("is nested more than {MAX_DEPTH} deep"));
        }
        if self.nodes > MAX_NODES {
            return self.failed(at, &format!("has more than {MAX_NODES} parts"));
        }
        Ok(Part {
            at,
            node,
            types,
            depth: below + 1,
        })
    }

    fn inner(&mut self, read: fn(&mut Self) -> Parsed) -> Parsed {
        self.level += 1;
        if self.level > MAX_DEPTH {
            return self.failed(self.at(), &format!("is nested more than {MAX_DEPTH} deep"));
        }
        let part = read(self);
        self.level -= 1;
        part
    }

    fn wants(&self, part: &Part, wanted: Types, who: &str) -> Result<(), String> {
        if part.types.has(wanted) {
            return Ok(());
        }
        let problem = format!(
            "{who} needs {}, and this is {}",
            wanted.shown(),
            part.types.shown()
        );
        self.failed(part.at, &problem)
    }

    fn either(&mut self) -> Parsed {
        self.joined(Self::both, ("or", "||"), Node::Or)
    }

    fn both(&mut self) -> Parsed {
        self.joined(Self::opposite, ("and", "&&"), Node::And)
    }

    fn joined(
        &mut self,
        read: fn(&mut Self) -> Parsed,
        (word, sign): (&str, &str),
        make: fn(Vec<Node>) -> Node,
    ) -> Parsed {
        let first = read(self)?;
        let (at, mut depth) = (first.at, first.depth);
        let mut parts = vec![first];
        while self.is_word(word) || self.is_sign(sign) {
            let part = read(self)?;
            depth = depth.max(part.depth);
            parts.push(part);
        }
        if parts.len() == 1 {
            return parts.pop().map_or_else(|| self.failed(at, "is empty"), Ok);
        }
        for part in &parts {
            self.wants(part, Types::BOOL, &format!("`{word}`"))?;
        }
        let node = make(parts.into_iter().map(|part| part.node).collect());
        self.part(at, node, Types::BOOL, depth)
    }

    fn opposite(&mut self) -> Parsed {
        let at = self.at();
        if !self.is_word("not") {
            return self.compared();
        }
        let part = self.inner(Self::opposite)?;
        self.wants(&part, Types::BOOL, "`not`")?;
        self.part(at, Node::Not(Box::new(part.node)), Types::BOOL, part.depth)
    }

    fn comparison(&mut self) -> Option<Compare> {
        let all = [
            Compare::Equal,
            Compare::NotEqual,
            Compare::LessOrEqual,
            Compare::GreaterOrEqual,
            Compare::Less,
            Compare::Greater,
        ];
        all.into_iter().find(|one| self.is_sign(one.sign()))
    }

    fn compared(&mut self) -> Parsed {
        let left = self.sum()?;
        let at = left.at;
        let made = if self.is_word("in") {
            let right = self.sum()?;
            self.wants(&left, Types::BOOL.or(Types::NUMBER).or(Types::TEXT), "`in`")?;
            self.wants(
                &right,
                Types::LIST.or(Types::TEXT).or(Types::OBJECT),
                "the right of `in`",
            )?;
            let depth = left.depth.max(right.depth);
            self.part(
                at,
                Node::In(Box::new((left.node, right.node))),
                Types::BOOL,
                depth,
            )?
        } else if let Some(compare) = self.comparison() {
            let right = self.sum()?;
            self.comparing(compare, left, right)?
        } else {
            return Ok(left);
        };
        if self.comparison().is_some() || self.is_word("in") {
            return self.failed(
                at,
                "comparisons are joined with `and`: `0 < rssi and rssi < 9`",
            );
        }
        Ok(made)
    }

    fn comparing(&mut self, compare: Compare, left: Part, right: Part) -> Parsed {
        let (at, depth) = (left.at, left.depth.max(right.depth));
        let other = match (&left.node, &right.node) {
            (Node::Null, _) => Some(right.node),
            (_, Node::Null) => Some(left.node),
            _ if !compatible(
                left.types,
                right.types,
                if compare.is_order() {
                    Types::NUMBER
                } else {
                    Types::BOOL
                },
            ) =>
            {
                let (left, right) = (left.types.shown(), right.types.shown());
                return self.failed(
                    at,
                    &format!("`{}` cannot compare {left} with {right}", compare.sign()),
                );
            }
            _ => {
                let pair = Box::new((left.node, right.node));
                return self.part(at, Node::Compare(compare, pair), Types::BOOL, depth);
            }
        };
        match other.filter(|_| !compare.is_order()) {
            Some(other) => {
                let is_opposite = compare == Compare::NotEqual;
                self.part(
                    at,
                    Node::IsNull(Box::new(other), is_opposite),
                    Types::BOOL,
                    depth,
                )
            }
            None => self.failed(at, "nothing is less or more than null"),
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let arithmetic = match () {
                () if self.is_sign("+") => Arithmetic::Plus,
                () if self.is_sign("-") => Arithmetic::Minus,
                () => return Ok(left),
            };
            let right = self.product()?;
            left = self.computed(arithmetic, left, right)?;
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        loop {
            let arithmetic = match () {
                () if self.is_sign("*") => Arithmetic::Times,
                () if self.is_sign("/") => Arithmetic::Over,
                () if self.is_sign("%") => Arithmetic::Rest,
                () => return Ok(left),
            };
            let right = self.unary()?;
            left = self.computed(arithmetic, left, right)?;
        }
    }

    fn computed(&mut self, arithmetic: Arithmetic, left: Part, right: Part) -> Parsed {
        let who = format!("`{}`", arithmetic.sign());
        let mut types = Types::NUMBER.or(Types::NULL);
        if arithmetic == Arithmetic::Plus {
            if !compatible(left.types, right.types, Types::NUMBER) {
                let (first, second) = (left.types.shown(), right.types.shown());
                let problem = format!(
                    "`+` cannot add {first} and {second}; concat(a, b) joins them to a text"
                );
                return self.failed(left.at, &problem);
            }
            let (both, any) = (left.types.and(right.types), left.types.or(right.types));
            types = match (
                both.has(Types::NUMBER),
                any.has(Types::TEXT) && both.has(Types::TEXT),
            ) {
                (true, true) => types.or(Types::TEXT),
                (false, true) => Types::TEXT.or(Types::NULL),
                _ => types,
            };
        } else {
            self.wants(&left, Types::NUMBER, &who)?;
            self.wants(&right, Types::NUMBER, &who)?;
        }
        let (at, depth) = (left.at, left.depth.max(right.depth));
        self.part(
            at,
            Node::Arithmetic(arithmetic, Box::new((left.node, right.node))),
            types,
            depth,
        )
    }

    fn unary(&mut self) -> Parsed {
        let at = self.at();
        if self.is_sign("-") {
            let part = self.inner(Self::unary)?;
            self.wants(&part, Types::NUMBER, "`-`")?;
            let node = match part.node {
                Node::Number(value) => Node::Number(-value),
                other => Node::Negative(Box::new(other)),
            };
            return self.part(at, node, Types::NUMBER.or(Types::NULL), part.depth);
        }
        if self.is_sign("!") {
            let part = self.inner(Self::unary)?;
            self.wants(&part, Types::BOOL, "`!`")?;
            return self.part(at, Node::Not(Box::new(part.node)), Types::BOOL, part.depth);
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed {
        let Some(Word { at, what }) = self.words.get(self.next).cloned() else {
            return self.failed(self.source.len(), "something is missing at the end");
        };
        self.next += 1;
        match what {
            What::Number(value) => self.part(at, Node::Number(value), Types::NUMBER, 0),
            What::Text(text) => self.part(at, Node::Text(text), Types::TEXT, 0),
            What::Sign("(") => {
                let part = self.inner(Self::either)?;
                self.sign(")")?;
                Ok(Part { at, ..part })
            }
            What::Sign("[") => {
                let items = self.items("]")?;
                let depth = items.iter().map(|item| item.depth).max().unwrap_or(0);
                let nodes = items.into_iter().map(|item| item.node).collect();
                self.part(at, Node::List(nodes), Types::LIST, depth)
            }
            What::Sign(sign) => self.failed(at, &format!("`{sign}` is not expected here")),
            What::Name(name) => match name.as_str() {
                "true" => self.part(at, Node::Bool(true), Types::BOOL, 0),
                "false" => self.part(at, Node::Bool(false), Types::BOOL, 0),
                "null" => self.part(at, Node::Null, Types::NULL, 0),
                "and" | "or" | "not" | "in" => {
                    self.failed(at, &format!("`{name}` is not expected here"))
                }
                _ if self.is_sign("(") => self.call(at, &name),
                _ => self.path(at, name),
            },
        }
    }

    /// Items up to a closing bracket.
    fn items(&mut self, end: &str) -> Result<Vec<Part>, String> {
        let mut items = Vec::new();
        if self.is_sign(end) {
            return Ok(items);
        }
        loop {
            items.push(self.inner(Self::either)?);
            if self.is_sign(end) {
                return Ok(items);
            }
            self.sign(",")?;
        }
    }

    fn path(&mut self, at: usize, root: String) -> Parsed {
        let mut rest = Vec::new();
        loop {
            let here = self.at();
            if self.is_sign(".") {
                match self.words.get(self.next).map(|word| &word.what) {
                    Some(What::Name(name)) => rest.push(Segment::Member(name.clone())),
                    _ => return self.failed(here, "a name is missing after `.`"),
                }
                self.next += 1;
            } else if self.is_sign("[") {
                match self.words.get(self.next).map(|word| &word.what) {
                    Some(What::Text(name)) => rest.push(Segment::Member(name.clone())),
                    Some(What::Number(place)) if place.fract() == 0.0 && *place < 1e6 => {
                        rest.push(Segment::Item(*place as usize));
                    }
                    _ => {
                        return self.failed(
                            here,
                            "`[` is followed by a whole number or a text in quotes",
                        );
                    }
                }
                self.next += 1;
                self.sign("]")?;
            } else {
                break;
            }
            if rest.len() > MAX_SEGMENTS {
                return self.failed(here, &format!("a path has at most {MAX_SEGMENTS} names"));
            }
        }
        let path = Path::new(root, rest);
        match self.names.types(&path) {
            Ok(types) => self.part(at, Node::Path(path), types, 0),
            Err(problem) => self.failed(at, &problem),
        }
    }

    fn call(&mut self, at: usize, name: &str) -> Parsed {
        let arguments = self.items(")")?;
        let depth = arguments
            .iter()
            .map(|argument| argument.depth)
            .max()
            .unwrap_or(0);
        match name {
            "has" => match <[Part; 1]>::try_from(arguments) {
                Ok(
                    [
                        Part {
                            node: Node::Path(path),
                            ..
                        },
                    ],
                ) => self.part(at, Node::Has(path), Types::BOOL, depth),
                _ => self.failed(at, "`has` needs one path: `has(humidity)`"),
            },
            "if" => match <[Part; 3]>::try_from(arguments) {
                Ok([condition, yes, no]) => {
                    self.wants(&condition, Types::BOOL, "the condition of `if`")?;
                    let types = yes.types.or(no.types);
                    self.part(
                        at,
                        Node::If(Box::new((condition.node, yes.node, no.node))),
                        types,
                        depth,
                    )
                }
                Err(_) => self.failed(
                    at,
                    "`if` needs three arguments: `if(condition, then, otherwise)`",
                ),
            },
            "coalesce" => {
                let Some(last) = arguments.last() else {
                    return self.failed(at, "`coalesce` needs an argument");
                };
                let all = arguments
                    .iter()
                    .fold(last.types, |types, argument| types.or(argument.types));
                let types = if last.types.has(Types::NULL) {
                    all
                } else {
                    all.without(Types::NULL)
                };
                self.part(
                    at,
                    Node::Coalesce(arguments.into_iter().map(|one| one.node).collect()),
                    types,
                    depth,
                )
            }
            _ => {
                let Some(function) = functions::named(name) else {
                    return self.failed(at, &unknown("function", name, functions::names()));
                };
                self.calling(at, function, arguments, depth)
            }
        }
    }

    fn calling(
        &mut self,
        at: usize,
        function: Function,
        arguments: Vec<Part>,
        depth: usize,
    ) -> Parsed {
        let signature = function.signature();
        let name = signature.name;
        if arguments.len() < signature.least || arguments.len() > signature.most {
            let wanted = match (signature.least, signature.most) {
                (1, 1) => "one argument".to_owned(),
                (least, most) if least == most => format!("{least} arguments"),
                (least, most) => format!("{least} to {most} arguments"),
            };
            return self.failed(
                at,
                &format!("`{name}` needs {wanted}, as in `{}`", signature.example),
            );
        }
        for (place, argument) in arguments.iter().enumerate() {
            self.wants(argument, signature.parameter(place), &format!("`{name}`"))?;
        }
        let nodes = arguments
            .into_iter()
            .map(|argument| argument.node)
            .collect();
        self.part(at, Node::Call(function, nodes), signature.result, depth)
    }
}

/// Whether values of two sets can be both numbers, both texts, or both of `also`.
fn compatible(left: Types, right: Types, also: Types) -> bool {
    left.and(right).has(Types::NUMBER.or(Types::TEXT).or(also))
}
