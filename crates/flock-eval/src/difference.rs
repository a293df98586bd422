//! Finds where two settings differ, by comparing JSON objects key by key.

use serde_json::{Map, Value};

/// A key whose value differs between two objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The dotted key.
    pub key: String,
    /// Its value in the first object; null if it is not there.
    pub old: Value,
    /// Its value in the second object.
    pub new: Value,
}

/// Returns every dotted key, in order, whose value differs between two objects. Keys in `free` may
/// differ.
pub fn differences(old: &Value, new: &Value, free: &[&str]) -> Vec<Difference> {
    let (old, new) = (leaves(old), leaves(new));
    let value =
        |of: &[(String, Value)], key: &str| of.iter().find(|(k, _)| k == key).map_or(Value::Null, |f| f.1.clone());
    let mut keys: Vec<&String> = old.iter().chain(&new).map(|(k, _)| k).collect();
    keys.sort();
    keys.dedup();
    let kept = keys.into_iter().filter(|key| !free.contains(&key.as_str()));
    let pair = |key: &String| Difference { key: key.clone(), old: value(&old, key), new: value(&new, key) };
    kept.map(pair).filter(|d| d.old != d.new).collect()
}

/// Returns the first of the [`differences`]: its key and both values.
pub fn difference(old: &Value, new: &Value, free: &[&str]) -> Option<(String, Value, Value)> {
    differences(old, new, free).into_iter().next().map(|d| (d.key, d.old, d.new))
}

/// Lists every dotted key with its value.
pub fn leaves(value: &Value) -> Vec<(String, Value)> {
    fn visit(prefix: &str, map: &Map<String, Value>, out: &mut Vec<(String, Value)>) {
        for (key, value) in map {
            let key = join(prefix, key);
            match value {
                Value::Object(map) => visit(&key, map, out),
                _ => out.push((key, value.clone())),
            }
        }
    }
    let mut out = Vec::new();
    if let Value::Object(map) = value {
        visit("", map, &mut out);
    }
    out
}

/// Joins a prefix and a key with a dot.
pub fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_string() } else { format!("{prefix}.{key}") }
}
