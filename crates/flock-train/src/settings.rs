//! Settings: values from a config file and from the caller, laid over the defaults of a config
//! struct.
//!
//! Each value has a dotted key such as `optimiser.rate`. Later values win. A key that the struct
//! does not have is an error that lists similar keys. The value `"off"` clears a key that may be
//! unset.

use std::path::Path;

use crate::remedy::TrainRemedy;
use flock_eval::difference::{join, leaves};
use flock_graph::Names;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

/// Why settings do not make a config.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{origin}: not TOML: {message}")]
    Syntax {
        /// File and line.
        origin: String,
        /// What the parser says.
        message: String,
    },
    /// The text is not `key=value`.
    #[error("{origin} {text:?}: expected key=value, such as {origin} optimiser.rate=1e-4")]
    NotAPair {
        /// Where it was given.
        origin: String,
        /// What was given.
        text: String,
    },
    /// The config has no such key.
    #[error("{origin}: unknown key `{key}`; {near}")]
    UnknownKey {
        /// Where it was given.
        origin: String,
        /// The key.
        key: String,
        /// Similar keys, or all keys.
        near: String,
    },
    /// The key cannot have this value.
    #[error("{origin}: {key}: {rule}")]
    Value {
        /// Where it was given.
        origin: String,
        /// The key.
        key: String,
        /// The rule for its value.
        rule: String,
    },
    /// A cosine schedule falls over a number of steps, and only a time is given.
    #[error("{origin}: minutes: a cosine schedule needs the number of steps, and none is given")]
    CosineWithoutSteps {
        /// Where the minutes were given.
        origin: String,
    },
}

impl ConfigError {
    /// Returns what to do about it, where that is known.
    pub fn remedy(&self) -> Option<TrainRemedy> {
        matches!(self, ConfigError::CosineWithoutSteps { .. }).then_some(TrainRemedy::GiveSteps)
    }
}

/// A value with its key, and where it was given.
#[derive(Clone, Debug)]
struct SettingEntry {
    origin: String,
    key: String,
    value: Value,
}

/// Values to lay over the defaults, in the order they were given.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    entries: Vec<SettingEntry>,
}

impl Settings {
    /// Makes empty settings: all keys have their defaults.
    pub fn new() -> Settings {
        Settings::default()
    }

    /// Adds a TOML file.
    pub fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => self.toml(&file, &text),
            Err(source) => Err(ConfigError::Io { file, source }),
        }
    }

    /// Adds TOML text. Errors call it `file`.
    pub fn toml(&mut self, file: &str, text: &str) -> Result<(), ConfigError> {
        let line = |at: usize| 1 + text.get(..at).unwrap_or(text).matches('\n').count();
        let syntax = |e: toml::de::Error| {
            let origin = e.span().map_or(file.to_string(), |span| format!("{file}:{}", line(span.start)));
            ConfigError::Syntax { origin, message: e.message().lines().collect::<Vec<_>>().join(" ") }
        };
        let table: toml::Table = toml::from_str(text).map_err(syntax)?;
        let values = serde_json::to_value(table).unwrap_or_default();
        // The same document once more, for the lines of its keys.
        let spanned = DeTable::parse(text).map_err(syntax)?;
        let mut keys = Vec::new();
        flatten(spanned.get_ref(), "", &mut keys);
        for (key, at) in keys {
            let value = key.split('.').try_fold(&values, |v, part| v.get(part)).cloned().unwrap_or_default();
            self.entries.push(SettingEntry { origin: format!("{file}:{}", line(at)), key, value });
        }
        Ok(())
    }

    /// Adds `key=value`. The value is read as TOML. What is not TOML is a string, so that paths and
    /// words need no quotes. `origin` is what errors call the place it was given at, such as a
    /// flag.
    pub fn set(&mut self, origin: &str, text: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(ConfigError::NotAPair { origin: origin.to_string(), text: text.to_string() });
        };
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
        let parsed = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
        let value = parsed.and_then(|v| serde_json::to_value(v).ok()).unwrap_or_else(|| Value::from(value.trim()));
        self.put(origin, key.trim(), value);
        Ok(())
    }

    /// Adds a value for a key; `origin` is what errors call the place it was given at, such as a
    /// flag.
    pub fn put(&mut self, origin: &str, key: &str, value: impl Into<Value>) {
        self.entries.push(SettingEntry { origin: origin.to_string(), key: key.to_string(), value: value.into() });
    }

    /// Returns the last value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().rev().find(|e| e.key == key).map(|e| &e.value)
    }

    /// Lays all values over the defaults.
    pub fn over<C: Serialize + DeserializeOwned + Default>(&self, defaults: &C) -> Result<C, ConfigError> {
        let schema = to_json(&C::default());
        let mut values = to_json(defaults);
        for entry in &self.entries {
            entry.lay_over(&schema, &mut values)?;
        }
        serde_path_to_error::deserialize(values).map_err(|e| {
            let key = e.path().to_string();
            self.wrong_value(&key, e.into_inner().to_string())
        })
    }

    /// Makes the error for a value that breaks a rule. It names the place where the value was
    /// given.
    pub fn wrong_value(&self, key: &str, rule: String) -> ConfigError {
        ConfigError::Value { origin: self.origin(key), key: key.to_string(), rule }
    }

    /// Returns the place where the value of a key was given.
    pub(crate) fn origin(&self, key: &str) -> String {
        // serde's path may end inside an array: `data.subgraph[1]`.
        let given = self.entries.iter().rev().find(|e| key == e.key || key.starts_with(&format!("{}[", e.key)));
        given.map_or("config".to_string(), |e| e.origin.clone())
    }
}

impl SettingEntry {
    fn lay_over(&self, schema: &Value, values: &mut Value) -> Result<(), ConfigError> {
        let (mut known, mut place) = (Some(schema), values);
        for part in self.key.split('.') {
            known = known.and_then(|k| k.get(part));
            place = match (known, place) {
                (Some(_), Value::Object(map)) => map.entry(part).or_insert(Value::Null),
                _ => return Err(self.unknown(schema)),
            };
        }
        let wrong = |rule: &str| {
            Err(ConfigError::Value { origin: self.origin.clone(), key: self.key.clone(), rule: rule.to_string() })
        };
        *place = match (known, &self.value) {
            (Some(Value::Object(_)), _) => return wrong("is a section of keys, not a value"),
            // NaN and infinity have no other form here. They must not pass for a key that is not set.
            (_, Value::Null) => return wrong("expected a value, and a number to be finite"),
            (Some(Value::Null), Value::String(word)) if word == "off" => Value::Null,
            (_, value) => value.clone(),
        };
        Ok(())
    }

    fn unknown(&self, schema: &Value) -> ConfigError {
        let mut keys = Names::new();
        for (key, _) in leaves(schema) {
            keys.intern(&key);
        }
        let mut near = keys.suggest(&self.key, 3);
        // A right name in the wrong section.
        let last = self.key.rsplit('.').next().unwrap_or(&self.key);
        let moved = keys.iter().filter(|k| k.rsplit('.').next() == Some(last) && !near.iter().any(|n| n == k));
        let moved: Vec<String> = moved.map(String::from).collect();
        near.extend(moved);
        let near = match near.is_empty() {
            true => format!("all keys: {}", keys.iter().collect::<Vec<_>>().join(", ")),
            false => format!("near keys: {}", near.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")),
        };
        ConfigError::UnknownKey { origin: self.origin.clone(), key: self.key.clone(), near }
    }
}

/// Replaces the values of `base` by those of `top`, key by key.
pub(crate) fn lay_over(base: &mut Value, top: &Value) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) => {
            for (key, value) in top {
                lay_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, top) => *base = top.clone(),
    }
}

fn flatten(table: &DeTable<'_>, prefix: &str, out: &mut Vec<(String, usize)>) {
    for (name, value) in table {
        let key = join(prefix, name.get_ref());
        match value.get_ref() {
            DeValue::Table(table) => flatten(table, &key, out),
            _ => out.push((key, name.span().start)),
        }
    }
}

/// Converts a config to JSON, where every key has a value or null.
pub(crate) fn to_json(config: &impl Serialize) -> Value {
    serde_json::to_value(config).expect("configs have string keys and plain values")
}
