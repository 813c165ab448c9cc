//! The service's own description of its API, read the way the contract tests ask for it, and
//! checked for being what it claims to be.

use std::collections::{BTreeMap, BTreeSet};

use hub_tests::documented::target;
use serde_json::{Value, json};

pub use hub_tests::documented::{DOCUMENT, object, resolve};

/// One operation of the document.
#[derive(Clone, Debug)]
pub struct Operation {
    /// In capitals.
    pub method: String,
    pub path: String,
    pub value: &'static Value,
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub fn operations() -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, item) in object(&DOCUMENT["paths"]) {
        for (method, value) in object(item)
            .iter()
            .filter(|(method, _)| METHODS.contains(&method.as_str()))
        {
            operations.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                value,
            });
        }
    }
    operations
}

impl Operation {
    /// As in `GET /tenant/hubs`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// As in `hubs.list`.
    pub fn id(&self) -> &'static str {
        text(&self.value["operationId"])
    }

    /// The subject of the operation: the first half of its id.
    pub fn area(&self) -> &'static str {
        self.id().split('.').next().unwrap_or_default()
    }

    /// Who may call: `public`, `user`, `platform`, `hub`, `tenant:<permission>`. Empty when the
    /// handler does not say.
    pub fn access(&self) -> &'static str {
        self.value["x-access"].as_str().unwrap_or_default()
    }

    /// Status and description of the successful response, or of the redirect where there is no
    /// other.
    pub fn success(&self) -> Option<(u16, &'static Value)> {
        let responses = object(&self.value["responses"]).iter();
        let mut successes =
            responses.filter_map(|(status, response)| Some((status.parse().ok()?, response)));
        successes
            .find(|(status, _)| (200..400).contains(status))
            .map(|(status, response)| (status, resolve(response)))
    }

    /// The parameters at a place (`path`, `query`, `header`), and whether each is required.
    pub fn parameters(&self, place: &str) -> BTreeMap<&'static str, bool> {
        let parameters = self.value["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(resolve);
        let here = parameters.filter(|parameter| parameter["in"] == place);
        here.map(|parameter| (text(&parameter["name"]), parameter["required"] == true))
            .collect()
    }

    /// The parameters at a place that lack a description or a type.
    fn undescribed(&self, place: &str) -> Vec<(&'static str, &'static Value)> {
        let parameters = self.value["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(resolve);
        let here = parameters.filter(|parameter| parameter["in"] == place);
        let lacks = |parameter: &Value| {
            let schema = &parameter["schema"];
            text_of(&parameter["description"]).is_empty()
                || (schema["type"].is_null() && schema["$ref"].is_null())
        };
        here.filter(|parameter| lacks(parameter))
            .map(|parameter| (text(&parameter["name"]), &parameter["schema"]))
            .collect()
    }

    /// The schema of a query parameter.
    pub fn query_schema(&self, name: &str) -> Option<&'static Value> {
        self.parameter_schema("query", name)
    }

    /// The schema of a parameter at a place.
    pub fn parameter_schema(&self, place: &str, name: &str) -> Option<&'static Value> {
        let parameters = self.value["parameters"].as_array()?.iter().map(resolve);
        let mut here =
            parameters.filter(|parameter| parameter["in"] == place && parameter["name"] == name);
        here.next().map(|parameter| resolve(&parameter["schema"]))
    }

    /// The schema of the JSON body, where there is one.
    pub fn body_schema(&self) -> Option<&'static Value> {
        let body = resolve(self.value.get("requestBody")?);
        body["content"]
            .get("application/json")
            .map(|media| resolve(&media["schema"]))
    }

    /// Whether the body is a file and not JSON.
    pub fn takes_a_file(&self) -> bool {
        self.value
            .get("requestBody")
            .is_some_and(|body| !body["content"]["application/octet-stream"].is_null())
    }

    pub fn path_parameters(&self) -> Vec<&str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect()
    }
}

fn text(value: &'static Value) -> &'static str {
    value.as_str().unwrap_or_default()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Calls `visit` with every value of the document and where it is.
fn walk(value: &'static Value, place: &str, visit: &mut impl FnMut(&str, &'static Value)) {
    visit(place, value);
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| walk(value, &format!("{place}/{key}"), visit)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| walk(value, &format!("{place}/{index}"), visit));
        }
        _ => {}
    }
}

#[test]
fn is_a_description_of_version_3_1() {
    assert!(
        text(&DOCUMENT["openapi"]).starts_with("3.1."),
        "openapi: {}",
        DOCUMENT["openapi"]
    );
    assert_eq!(DOCUMENT["info"]["version"], "1.0.0");
    assert!(!text(&DOCUMENT["info"]["title"]).is_empty(), "no title");
    assert!(!operations().is_empty(), "no operations");
}

#[test]
fn every_reference_points_at_something() {
    let mut dangling = Vec::new();
    walk(&DOCUMENT, "", &mut |place, value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str)
            && target(reference).is_none()
        {
            dangling.push(format!("{place}: {reference}"));
        }
    });
    assert!(dangling.is_empty(), "{dangling:#?}");
}

#[test]
fn every_operation_is_described_whole() {
    let schemes = object(&DOCUMENT["components"]["securitySchemes"]);
    let mut faults = Vec::new();
    let mut ids = BTreeSet::new();
    for operation in operations() {
        let mut fault = |what: String| faults.push(format!("{}: {what}", operation.name()));
        if text(&operation.value["summary"]).is_empty() {
            fault("no summary".into());
        }
        if operation.value["tags"].as_array().is_none_or(Vec::is_empty) {
            fault("no tag".into());
        }
        if operation.success().is_none() {
            fault("no successful response".into());
        }
        for (status, response) in object(&operation.value["responses"]) {
            if resolve(response)["description"].as_str().is_none() {
                fault(format!("response {status} has no description"));
            }
        }
        if operation.id().split_once('.').is_none() {
            fault(format!(
                "the operationId `{}` is not of the form area.name",
                operation.id()
            ));
        }
        if !ids.insert(operation.id()) {
            fault(format!(
                "the operationId {} is another operation's too",
                operation.id()
            ));
        }
        for place in ["path", "query", "header"] {
            for (name, schema) in operation.undescribed(place) {
                fault(format!(
                    "the {place} parameter {name} is not described whole: {schema}"
                ));
            }
        }
        if operation.access() == "public" && operation.value["security"] != json!([]) {
            fault("is public and says so nowhere: `security` must be []".into());
        }
        let named: BTreeSet<&str> = operation.path_parameters().into_iter().collect();
        let described: BTreeSet<&str> = operation.parameters("path").into_keys().collect();
        if named != described {
            fault(format!(
                "the path has {named:?}, the parameters are {described:?}"
            ));
        }
        for requirement in operation.value["security"].as_array().into_iter().flatten() {
            for scheme in object(requirement)
                .keys()
                .filter(|scheme| !schemes.contains_key(*scheme))
            {
                fault(format!("the security scheme {scheme} is nowhere described"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Every schema, and every member of an object, says what it is; the forms that client generators
/// misread do not occur.
#[test]
fn schemas_are_described_in_forms_that_generators_read() {
    let mut faults = Vec::new();
    for (name, schema) in object(&DOCUMENT["components"]["schemas"]) {
        if name.ends_with(|c: char| c.is_ascii_digit()) {
            faults.push(format!(
                "{name}: two types have this name, so that it got a number; rename one"
            ));
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            faults.push(format!("{name}: a name is letters and digits"));
        }
        if text(&schema["description"]).is_empty() {
            faults.push(format!("{name}: no description"));
        }
        walk(schema, name, &mut |place, value| {
            for (member, property) in object(&value["properties"]) {
                if text(&property["description"]).is_empty()
                    && text(&resolve(property)["description"]).is_empty()
                {
                    faults.push(format!("{place}.{member}: no description"));
                }
            }
        });
    }
    walk(&DOCUMENT, "", &mut |place, value| {
        let is_constant = |choice: &Value| choice.get("const").is_some();
        if value["oneOf"]
            .as_array()
            .is_some_and(|choices| choices.iter().any(is_constant))
        {
            faults.push(format!(
                "{place}: a choice of constants; it should be an enum"
            ));
        }
        for keyword in ["schema", "items"] {
            if value.get(keyword).is_some_and(Value::is_boolean) {
                faults.push(format!("{place}/{keyword}: a schema that is true or false"));
            }
        }
        for (member, property) in object(&value["properties"]) {
            if property.is_boolean() {
                faults.push(format!(
                    "{place}/properties/{member}: a schema that is true or false"
                ));
            }
        }
    });
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_failure_is_a_problem() {
    let mut faults = Vec::new();
    for operation in operations() {
        for (status, response) in object(&operation.value["responses"]) {
            let response = resolve(response);
            let schema = &response["content"]["application/json"]["schema"];
            if status.starts_with(['4', '5']) && schema["$ref"] != "#/components/schemas/Problem" {
                faults.push(format!("{} {status}: {response}", operation.name()));
            }
            if object(&response["headers"])
                .keys()
                .all(|name| name != "X-Request-Id")
            {
                faults.push(format!("{} {status}: no X-Request-Id", operation.name()));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn tags_and_operations_fit_together() {
    let described: BTreeSet<&str> = DOCUMENT["tags"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tag| text(&tag["name"]))
        .collect();
    let operations = operations();
    let tags = operations
        .iter()
        .flat_map(|operation| operation.value["tags"].as_array().into_iter().flatten());
    let used: BTreeSet<&str> = tags.map(text).collect();
    assert_eq!(used, described);
}

/// A handler says who may call it by taking an extractor of `authz` or `authn`, and that writes
/// `x-access`.
#[test]
fn every_handler_says_who_may_call_it() {
    let silent: Vec<String> = operations()
        .iter()
        .filter(|operation| operation.access().is_empty())
        .map(Operation::name)
        .collect();
    assert!(
        silent.is_empty(),
        "these handlers take no access extractor: {silent:#?}"
    );
}
