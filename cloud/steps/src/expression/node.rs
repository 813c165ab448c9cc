//! The compiled form of an expression.

use super::functions::Function;
use super::path::Path;

#[derive(Debug)]
pub enum Node {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Path(Path),
    Has(Path),
    Not(Box<Node>),
    Negative(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Arithmetic(Arithmetic, Box<(Node, Node)>),
    Compare(Compare, Box<(Node, Node)>),
    /// Whether the node is null; the second member negates it.
    IsNull(Box<Node>, bool),
    In(Box<(Node, Node)>),
    If(Box<(Node, Node, Node)>),
    Coalesce(Vec<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Plus,
    Minus,
    Times,
    Over,
    Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Arithmetic {
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
            Self::Rest => "%",
        }
    }
}

impl Compare {
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    pub const fn is_order(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }
}

impl Node {
    /// Whether something in it depends on the event.
    pub fn names_something(&self) -> bool {
        let any = |nodes: &[Self]| nodes.iter().any(Self::names_something);
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => false,
            Self::Path(_) | Self::Has(_) => true,
            Self::Not(node) | Self::Negative(node) | Self::IsNull(node, _) => {
                node.names_something()
            }
            Self::List(nodes)
            | Self::And(nodes)
            | Self::Or(nodes)
            | Self::Coalesce(nodes)
            | Self::Call(_, nodes) => any(nodes),
            Self::Arithmetic(_, pair) | Self::Compare(_, pair) | Self::In(pair) => {
                pair.0.names_something() || pair.1.names_something()
            }
            Self::If(three) => {
                three.0.names_something() || three.1.names_something() || three.2.names_something()
            }
        }
    }
}
