//! The first weights of a run: initial weights or a checkpoint, with the metadata that the run's
//! checkpoints will have.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;

use crate::config::{TrainConfig, WalkCount};
use crate::run::{BUNDLED, RunContext, TrainError};
use crate::settings::to_json;
use flock_eval::datasets::Fingerprint;
use flock_model::checkpoint::{Checkpoint, Metadata, Task};
use flock_model::files::sha256_hex;
use flock_model::init::initial_weights;

/// Hashes the part of a config that changes the weights.
pub(crate) fn config_hash(config: &TrainConfig) -> String {
    let mut config = config.clone();
    config.threads = None;
    config.steps = 0;
    config.output = Default::default();
    let mut config = to_json(&config);
    // Keys that came later: configs keep the hashes that checkpoints already state.
    if let Some(keys) = config.as_object_mut() {
        keys.remove("minutes");
    }
    if let Some(keys) = config["walks"].as_object_mut() {
        keys.retain(|key, value| !(key == "query_start_period" && value.is_null()));
        keys.retain(|key, value| !(key == "inverses" && *value == true));
    }
    if let Some(keys) = config["model"].as_object_mut() {
        keys.retain(|key, value| !(["width", "heads", "layers"].contains(&key.as_str()) && value.is_null()));
    }
    sha256_hex(config.to_string().as_bytes())
}

/// Returns the config of a run that starts from a checkpoint in memory: `model.from` is the
/// checkpoint's hash. So a run that is resumed with another checkpoint is refused, as one with another
/// file name is.
pub(crate) fn started_from<'a>(config: &'a TrainConfig, start: Option<&Checkpoint>) -> Cow<'a, TrainConfig> {
    let Some(start) = start else { return Cow::Borrowed(config) };
    let mut config = config.clone();
    config.model.from = Some(format!("sha256:{}", start.hash).into());
    Cow::Owned(config)
}

/// Returns the weights that training starts from, with the metadata that its checkpoints will have.
pub(crate) fn first_weights(
    config: &TrainConfig,
    graphs: &[Fingerprint],
    context: &RunContext<'_>,
) -> Result<Checkpoint, TrainError> {
    let count = graphs.len().max(1) as f64;
    let mean_nodes = graphs.iter().map(|g| f64::from(g.entities)).sum::<f64>() / count;
    let mean_triples = graphs.iter().map(|g| g.triples as f64).sum::<f64>() / count;
    let names = graphs.iter().map(|g| g.name.clone());
    let note = |how: String| {
        let version = env!("CARGO_PKG_VERSION");
        let made = format!("{how} by flock-kg {version}, seed {}, config {}", config.seed, &config_hash(config)[..12]);
        Some(config.model.note.as_ref().map_or(made.clone(), |note| format!("{note}; {made}")))
    };
    let Some(path) = &config.model.from else {
        let published = Metadata::published(config.task);
        let width = config.model.width.unwrap_or(published.width);
        let mut meta = Metadata {
            width,
            heads: config.model.heads.unwrap_or(Metadata::default_heads(width)),
            layers: config.model.layers.unwrap_or(published.layers),
            updates: config.model.updates.unwrap_or(published.updates),
            length: config.model.length.unwrap_or(published.length),
            processor: config.model.processor.unwrap_or(published.processor),
            consensus: config.model.consensus.unwrap_or(published.consensus),
            balanced_on_query_relation: config.walks.balanced_on_query_relation,
            backtrack: config.walks.backtrack,
            all_at_query: config.walks.all_at_query,
            inverses: config.walks.inverses,
            n_train: config.walks.n_train,
            mean_nodes,
            mean_triples,
            graphs: names.collect(),
            licence: "MIT OR Apache-2.0".to_string(),
            note: note("trained".to_string()),
            ..published
        };
        config.walks.set_starts(&mut meta);
        return Ok(initial_weights(meta, config.seed)?);
    };
    let mut checkpoint = match (context.start, context.bundled) {
        (Some(start), _) => start.clone(),
        (None, Some(bundled)) if path == Path::new(BUNDLED) => bundled(config.task),
        _ => Checkpoint::read(path)?,
    };
    let origin = match context.start {
        Some(_) => format!("the model {}", short(&checkpoint.hash)),
        None => path.display().to_string(),
    };
    let start = |reason: String| Err(TrainError::Start { file: origin.clone(), reason });
    let meta = &mut checkpoint.weights.meta;
    if meta.task != config.task {
        return start(format!("predicts {}, but the config has task = \"{}\"", plural(meta.task), config.task));
    }
    let asked = &config.model;
    let sizes = [
        ("updates", asked.updates.map(Value::from), Value::from(meta.updates)),
        ("width", asked.width.map(Value::from), Value::from(meta.width)),
        ("heads", asked.heads.map(Value::from), Value::from(meta.heads)),
        ("layers", asked.layers.map(Value::from), Value::from(meta.layers)),
        ("length", asked.length.map(Value::from), Value::from(meta.length)),
        ("processor", asked.processor.as_ref().map(to_json), to_json(&meta.processor)),
        ("consensus", asked.consensus.as_ref().map(to_json), to_json(&meta.consensus)),
    ];
    for (key, asked, has) in sizes {
        if let Some(asked) = asked.filter(|asked| *asked != has) {
            return start(format!("has {key} {has}, but the config has model.{key} = {asked}"));
        }
    }
    // A model that was trained with such walks, or without inverse types, keeps the switch.
    meta.balanced_on_query_relation |= config.walks.balanced_on_query_relation;
    meta.backtrack |= config.walks.backtrack;
    meta.all_at_query |= config.walks.all_at_query;
    meta.inverses &= config.walks.inverses;
    config.walks.set_starts(meta);
    // With its own rule the model gets as many walks at test time as in training. A fixed count
    // becomes a rule that gives this count on these graphs. A count for pieces says nothing about
    // whole graphs.
    if let (WalkCount::Fixed(n), None) = (config.walks.n, config.data.subgraph) {
        (meta.n_train, meta.mean_nodes, meta.mean_triples) = (n, mean_nodes, mean_triples);
    }
    for name in names {
        if !meta.graphs.contains(&name) {
            meta.graphs.push(name);
        }
    }
    meta.note = note(format!("trained further from {}", short(&checkpoint.hash)));
    Ok(checkpoint)
}

/// The beginning of a hash, for people.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

fn plural(task: Task) -> &'static str {
    match task {
        Task::Entity => "entities",
        Task::Relation => "relations",
    }
}
