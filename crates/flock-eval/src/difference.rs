//! Finds where two settings differ, by comparing JSON objects key by key.

use serde_json::{Map, Value};

/// Returns the first dotted key, in order, whose value differs between two objects, with both
/// values. Keys in `free` may differ.
pub fn difference(old: &Value, new: &Value, free: &[&str]) -> Option<(String, Value, Value)> {
    let (old, new) = (leaves(old), leaves(new));
    let value =
        |of: &[(String, Value)], key: &str| of.iter().find(|(k, _)| k == key).map_or(Value::Null, |f| f.1.clone());
    let mut keys: Vec<&String> = old.iter().chain(&new).map(|(k, _)| k).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter().filter(|key| !free.contains(&key.as_str())).find_map(|key| {
        let (old, new) = (value(&old, key), value(&new, key));
        (old != new).then(|| (key.clone(), old, new))
    })
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
