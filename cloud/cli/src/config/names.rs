//! References by name in place of ids: `${model:Roof sensor}`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::failure::Failure;
use crate::text::printable;

const KINDS: [&str; 5] = ["model", "pipeline", "app", "release", "endpoint"];

#[derive(Default)]
pub struct Names {
    references: BTreeMap<String, String>,
    ids: BTreeMap<String, String>,
}

impl Names {
    pub fn add(&mut self, kind: &str, name: &str, id: &str) {
        let reference = format!("${{{kind}:{name}}}");
        self.references.insert(id.to_owned(), reference.clone());
        self.ids.insert(reference, id.to_owned());
    }

    /// The document with names in place of ids.
    pub fn portable(&self, value: Value) -> Value {
        self.replaced(value, &|text| Ok(self.references.get(text).cloned()))
            .unwrap_or_default()
    }

    /// The document with the ids of this tenant.
    pub fn resolved(&self, value: Value) -> Result<Value, Failure> {
        self.replaced(value, &|text| {
            let kind = text
                .strip_prefix("${")
                .and_then(|rest| rest.strip_suffix('}')?.split_once(':'));
            match kind {
                Some((kind, name)) if KINDS.contains(&kind) => match self.ids.get(text) {
                    Some(id) => Ok(Some(id.clone())),
                    None => Err(Failure::failed(format!(
                        "the tenant has no {kind} `{}`; create it first",
                        printable(name)
                    ))),
                },
                _ => Ok(None),
            }
        })
    }

    fn replaced(
        &self,
        value: Value,
        of_text: &dyn Fn(&str) -> Result<Option<String>, Failure>,
    ) -> Result<Value, Failure> {
        Ok(match value {
            Value::String(text) => Value::String(of_text(&text)?.unwrap_or(text)),
            Value::Array(items) => Value::Array(
                items
                    .into_iter()
                    .map(|item| self.replaced(item, of_text))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(members) => {
                let replaced = members
                    .into_iter()
                    .map(|(name, value)| Ok((name, self.replaced(value, of_text)?)));
                Value::Object(replaced.collect::<Result<_, Failure>>()?)
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_stand_for_ids_wherever_they_are() {
        let (mut one, mut other) = (Names::default(), Names::default());
        one.add("model", "Roof: {a}", "id-1");
        other.add("model", "Roof: {a}", "id-2");
        let file = one.portable(json!({"source": {"deviceUuids": ["id-1", "id-9"]}}));
        assert_eq!(
            file,
            json!({"source": {"deviceUuids": ["${model:Roof: {a}}", "id-9"]}})
        );
        let there = other.resolved(file.clone()).expect("it is known there");
        assert_eq!(there, json!({"source": {"deviceUuids": ["id-2", "id-9"]}}));
        assert!(Names::default().resolved(file).is_err());
        // Variables of secrets, and other text, are not replaced.
        let text = json!({"a": "${HUB_SECRET}", "b": "${model"});
        assert_eq!(other.resolved(text.clone()).expect("no reference"), text);
    }
}
