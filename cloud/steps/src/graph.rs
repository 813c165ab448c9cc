//! A pipeline drawn as a graph: one chain of nodes from a source over steps to a destination.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::definition::OPS;
use super::hints::hints;
use super::{DestinationForm, MAX_STEPS, Problem, Program};

/// The types of the first and the last node.
const SOURCE: &str = "source";
const DESTINATION: &str = "destination";
/// Nodes of a graph, and edges.
const MAX_NODES: usize = MAX_STEPS + 2;
const MAX_EDGES: usize = 4 * MAX_NODES;
/// Characters of the id of a node.
const MAX_ID_CHARS: usize = 200;
/// The members of a pipeline besides source, steps and destination, which a graph may have too.
const OTHERS: [&str; 4] = ["name", "description", "enabled", "delivery"];
/// The name of a pipeline that has none.
pub const NAMELESS: &str = "Pipeline";

/// A finding in a pipeline that can be created all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// The node that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// The finding as a sentence.
    pub message: String,
}

/// Why a graph is not a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphProblem {
    /// The node that it is about; None if it is about the graph as a whole.
    pub node_id: Option<String>,
    pub message: String,
}

struct Node<'a> {
    id: &'a str,
    kind: &'a str,
    config: Map<String, Value>,
}

type Found<T> = Result<T, GraphProblem>;

fn refused<T>(node: Option<&str>, message: impl Into<String>) -> Found<T> {
    Err(GraphProblem {
        node_id: node.map(str::to_owned),
        message: message.into(),
    })
}

/// The request that makes the pipeline of a graph. Its destination has one of these forms.
pub fn from_graph(graph: &Value, forms: &[DestinationForm]) -> Found<(Value, Vec<Warning>)> {
    let Some(graph) = graph.as_object() else {
        return refused(None, "must be an object with `nodes` and `edges`");
    };
    if let Some(name) = graph.keys().find(|name| {
        !["nodes", "edges"].contains(&name.as_str()) && !OTHERS.contains(&name.as_str())
    }) {
        return refused(
            None,
            format!("a graph has no member `{}`", super::expression::shown(name)),
        );
    }
    let nodes = nodes(graph)?;
    let order = chain(&nodes, &edges(graph, &nodes)?)?;
    let chained: Vec<&Node<'_>> = order.into_iter().filter_map(|at| nodes.get(at)).collect();
    let [source, steps @ .., destination] = chained.as_slice() else {
        return refused(None, "needs a source and a destination");
    };
    let step = |node: &&Node<'_>| {
        let mut step = node.config.clone();
        step.insert("op".to_owned(), node.kind.into());
        Value::Object(step)
    };
    let list = Value::Array(steps.iter().map(step).collect());
    let id_of = |pointer: &str| {
        let place = pointer
            .trim_start_matches('/')
            .split('/')
            .next()?
            .parse::<usize>()
            .ok()?;
        steps.get(place).map(|node| node.id.to_owned())
    };
    if let Err(Problem { pointer, message }) = Program::compile(&list) {
        let member = pointer
            .splitn(3, '/')
            .nth(2)
            .map(|member| format!("/{member}: "))
            .unwrap_or_default();
        return Err(GraphProblem {
            node_id: id_of(&pointer),
            message: format!("{member}{message}"),
        });
    }
    check_destination(destination, forms)?;
    let mut pipeline: Map<String, Value> = OTHERS
        .iter()
        .filter_map(|name| {
            Some((
                (*name).to_owned(),
                graph.get(*name).filter(|value| !value.is_null())?.clone(),
            ))
        })
        .collect();
    let mut warnings = Vec::new();
    if !pipeline.contains_key("name") {
        pipeline.insert("name".to_owned(), NAMELESS.into());
        let message = format!("the pipeline has no name, and is called `{NAMELESS}`");
        warnings.push(Warning {
            node_id: None,
            message,
        });
    }
    let found = hints(&list, &Value::Object(destination.config.clone()));
    warnings.extend(found.into_iter().map(|hint| {
        Warning {
            node_id: hint
                .step
                .map_or(Some(destination.id), |step| {
                    steps.get(step).map(|node| node.id)
                })
                .map(str::to_owned),
            message: hint.message,
        }
    }));
    pipeline.insert("source".to_owned(), Value::Object(source.config.clone()));
    pipeline.insert("steps".to_owned(), list);
    pipeline.insert(
        "destination".to_owned(),
        Value::Object(destination.config.clone()),
    );
    Ok((Value::Object(pipeline), warnings))
}

fn check_destination(node: &Node<'_>, forms: &[DestinationForm]) -> Found<()> {
    let kinds: Vec<&str> = forms.iter().map(|form| form.kind).collect();
    match node.config.get("kind").and_then(Value::as_str) {
        Some(kind) if kinds.contains(&kind) => Ok(()),
        _ => refused(
            Some(node.id),
            format!("/kind: must be one of {}", kinds.join(", ")),
        ),
    }
}

fn nodes(graph: &Map<String, Value>) -> Found<Vec<Node<'_>>> {
    let Some(list) = graph.get("nodes").and_then(Value::as_array) else {
        return refused(None, "`nodes` must be a list");
    };
    if list.len() > MAX_NODES {
        return refused(
            None,
            format!("`nodes` must have {MAX_NODES} items or fewer"),
        );
    }
    let mut nodes = Vec::with_capacity(list.len());
    let mut ids = HashSet::new();
    for (at, node) in list.iter().enumerate() {
        let text = |name: &str| {
            node.get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let Some(id) = text("id").filter(|id| id.chars().nth(MAX_ID_CHARS).is_none()) else {
            let message =
                format!("`nodes[{at}].id` must be a text of {MAX_ID_CHARS} characters or less");
            return refused(None, message);
        };
        if !ids.insert(id) {
            return refused(Some(id), "another node has the same id");
        }
        let Some(kind) = text("type") else {
            return refused(Some(id), "`type` is required");
        };
        if kind != SOURCE && kind != DESTINATION && !OPS.iter().any(|(op, _)| *op == kind) {
            let known = OPS.iter().map(|(op, _)| *op).chain([SOURCE, DESTINATION]);
            return refused(Some(id), super::expression::unknown("type", kind, known));
        }
        let config = match node.get("config") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(config)) => config.clone(),
            Some(_) => return refused(Some(id), "`config` must be an object"),
        };
        if config.contains_key("op") {
            return refused(
                Some(id),
                "`config` has no `op`: that is the type of the node",
            );
        }
        nodes.push(Node { id, kind, config });
    }
    Ok(nodes)
}

/// Edges as places of nodes.
fn edges(graph: &Map<String, Value>, nodes: &[Node<'_>]) -> Found<Vec<(usize, usize)>> {
    let Some(list) = graph.get("edges").and_then(Value::as_array) else {
        return refused(None, "`edges` must be a list");
    };
    if list.len() > MAX_EDGES {
        return refused(
            None,
            format!("`edges` must have {MAX_EDGES} items or fewer"),
        );
    }
    let places: HashMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| (node.id, at))
        .collect();
    let mut edges = Vec::with_capacity(list.len());
    for (at, edge) in list.iter().enumerate() {
        let end = |name: &str| match edge.get(name).and_then(Value::as_str) {
            None => refused(
                None,
                format!("`edges[{at}].{name}` must be the id of a node"),
            ),
            Some(id) => match places.get(id) {
                Some(place) => Ok(*place),
                None => {
                    let id = super::expression::shown(id);
                    refused(
                        None,
                        format!("`edges[{at}].{name}`: there is no node `{id}`"),
                    )
                }
            },
        };
        edges.push((end("from")?, end("to")?));
    }
    Ok(edges)
}

/// The nodes in their order, if they are one chain.
fn chain(nodes: &[Node<'_>], edges: &[(usize, usize)]) -> Found<Vec<usize>> {
    let only = |kind: &str| {
        let mut found = nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.kind == kind);
        match (found.next(), found.next()) {
            (Some((at, _)), None) => Ok(at),
            (None, _) => refused(None, format!("there is no node of type `{kind}`")),
            (_, Some((_, second))) => refused(
                Some(second.id),
                format!("there is another node of type `{kind}`"),
            ),
        }
    };
    let (source, destination) = (only(SOURCE)?, only(DESTINATION)?);
    let mut next: HashMap<usize, usize> = HashMap::new();
    let mut entered: HashSet<usize> = HashSet::new();
    let id = |at: usize| nodes.get(at).map(|node| node.id);
    for (from, to) in edges {
        if from == to {
            return refused(id(*from), "leads to itself");
        }
        if *to == source {
            return refused(id(*to), "nothing leads to the source");
        }
        if *from == destination {
            return refused(id(*from), "nothing follows the destination");
        }
        if next.insert(*from, *to).is_some() {
            return refused(id(*from), "forks: a node leads to one other node");
        }
        if !entered.insert(*to) {
            return refused(id(*to), "is a join: one node leads to a node");
        }
    }
    let mut order = vec![source];
    let mut here = source;
    // No node is entered twice, and the source never: this cannot go round.
    while let Some(to) = next.get(&here) {
        order.push(*to);
        here = *to;
    }
    if here != destination {
        return refused(id(here), "leads nowhere: the last node is the destination");
    }
    match (0..nodes.len()).find(|at| !order.contains(at)) {
        None => Ok(order),
        Some(at) if next.contains_key(&at) && entered.contains(&at) && goes_round(&next, at) => {
            refused(id(at), "is part of a cycle")
        }
        Some(at) => refused(id(at), "is not reached from the source"),
    }
}

fn goes_round(next: &HashMap<usize, usize>, from: usize) -> bool {
    let mut here = from;
    for _ in 0..next.len() {
        match next.get(&here) {
            Some(to) if *to == from => return true,
            Some(to) => here = *to,
            None => return false,
        }
    }
    false
}

/// The graph of a pipeline. [`from_graph`] makes the same pipeline of it.
pub fn to_graph(pipeline: &Value) -> Value {
    let config = |name: &str| {
        pipeline
            .get(name)
            .filter(|value| value.is_object())
            .cloned()
            .unwrap_or_else(|| json!({}))
    };
    let mut nodes = vec![json!({"id": SOURCE, "type": SOURCE, "config": config(SOURCE)})];
    let steps = pipeline
        .get("steps")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for (at, step) in steps.iter().enumerate() {
        let mut config = step.as_object().cloned().unwrap_or_default();
        let op = config.remove("op").unwrap_or(Value::Null);
        nodes.push(json!({"id": format!("step-{}", at + 1), "type": op, "config": config}));
    }
    nodes.push(json!({"id": DESTINATION, "type": DESTINATION, "config": config(DESTINATION)}));
    let ids: Vec<&Value> = nodes.iter().filter_map(|node| node.get("id")).collect();
    let edges: Vec<Value> = ids
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => Some(json!({"from": from, "to": to})),
            _ => None,
        })
        .collect();
    let mut graph = Map::new();
    for name in OTHERS {
        if let Some(value) = pipeline.get(name).filter(|value| !value.is_null()) {
            graph.insert(name.to_owned(), value.clone());
        }
    }
    graph.insert("edges".to_owned(), edges.into());
    graph.insert("nodes".to_owned(), nodes.into());
    Value::Object(graph)
}
