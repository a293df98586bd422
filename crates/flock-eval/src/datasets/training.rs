//! Training graphs: from a dataset directory, or from a graph, in a file or in memory, of which some
//! triples are held out.

use std::path::Path;
use std::sync::Arc;

use flock_graph::{Graph, GraphBuilder, LoadOptions, Topology, Triple};

use super::directory::{Dataset, finish};
use super::error::DatasetError;
use super::graph::NamedGraph;
use super::layout::{Part, Split};
use super::test_set::{TestSet, order};

/// A graph to train on.
pub struct TrainingGraph {
    /// The graph.
    pub graph: Arc<NamedGraph>,
    /// Its validation triples, if there are any.
    pub validation: Option<TestSet>,
    /// Warnings about what the file has and the graph does not.
    pub left_out: Option<String>,
}

/// Loads a training graph from a dataset directory, or from a graph file, which is read with
/// `options`. `holdout` is the share of a file's triples that are held out for validation.
pub fn training(path: &Path, options: &LoadOptions, holdout: f64, seed: u64) -> Result<TrainingGraph, DatasetError> {
    if !path.is_dir() {
        return graph_file(path, options, holdout, seed);
    }
    let dataset = Dataset::open(path)?;
    if dataset.protocol.walked(Split::Valid) == Part::Train {
        let (graph, validation) = dataset.load(Split::Valid)?;
        return Ok(TrainingGraph { graph, validation, left_out: None });
    }
    let graph = training_part(&dataset)?;
    let graph = Arc::new(NamedGraph { name: dataset.name.clone(), graph, walked: None });
    Ok(TrainingGraph { graph, validation: dataset.load(Split::Valid)?.1, left_out: None })
}

/// Counts the distinct training triples of a dataset.
pub fn training_triples(dataset: &Dataset) -> Result<usize, DatasetError> {
    Ok(training_part(dataset)?.topology().num_triples())
}

fn training_part(dataset: &Dataset) -> Result<Graph, DatasetError> {
    let mut builder = GraphBuilder::new();
    dataset.for_each(Part::Train, |h, r, t| builder.add(h, r, t))?;
    finish(builder, &dataset.file(Part::Train))
}

/// Loads the validation triples of a dataset directory.
pub fn validation(path: &Path) -> Result<TestSet, DatasetError> {
    Dataset::open(path)?.test_set(Split::Valid)
}

fn graph_file(path: &Path, options: &LoadOptions, holdout: f64, seed: u64) -> Result<TrainingGraph, DatasetError> {
    let (graph, report) = flock_graph::load(path, options)?;
    let warnings: Vec<String> = report.warnings().iter().map(|warning| format!("warning: {warning}")).collect();
    let left_out = (!warnings.is_empty()).then(|| warnings.join("\n"));
    let name = path.file_stem().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    Ok(TrainingGraph { left_out, ..training_graph(&name, graph, holdout, seed)? })
}

/// Makes a training graph of a graph in memory. `holdout` is the share of its triples that are held
/// out for validation; the seed draws them. The same graph in a file gives the same.
pub fn training_graph(name: &str, graph: Graph, holdout: f64, seed: u64) -> Result<TrainingGraph, DatasetError> {
    let (name, all) = (name.to_string(), graph.topology());
    // One triple at least stays to train on.
    let held = ((all.num_triples() as f64 * holdout) as usize).min(all.num_triples().saturating_sub(1));
    if held == 0 {
        let graph = Arc::new(NamedGraph { name, graph, walked: None });
        return Ok(TrainingGraph { graph, validation: None, left_out: None });
    }
    let order = order(seed, all.num_triples());
    let mut ids: Vec<u32> = (0..held as u64).map(|k| order.get(k) as u32).collect();
    ids.sort_unstable();
    let triples: Vec<Triple> = ids.iter().map(|&id| all.triple(id)).collect();
    let rest = (0u32..).zip(all.triples()).filter(|(id, _)| ids.binary_search(id).is_err()).map(|(_, t)| t).collect();
    let kept = Topology::build(all.num_nodes(), all.num_relations(), rest)?;
    let (known, rows) = (all.clone(), all.num_triples() as u64);
    let on = Arc::new(NamedGraph { name, graph, walked: Some(kept) });
    let validation = TestSet { on: on.clone(), triples, known, heads: true, rows, dropped: 0 };
    Ok(TrainingGraph { graph: on, validation: Some(validation), left_out: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_in_memory_is_held_out_like_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring.tsv");
        let text: String = (0..40).map(|i| format!("e{i}\tnext\te{}\n", (i + 1) % 40)).collect();
        std::fs::write(&path, text).unwrap();
        let (graph, _) = flock_graph::load(&path, &LoadOptions::default()).unwrap();
        for (holdout, held) in [(0.0, 0), (0.1, 4), (0.99, 39), (f64::NAN, 0)] {
            let [file, memory] = [
                training(&path, &LoadOptions::default(), holdout, 7).unwrap(),
                training_graph("ring", graph.clone(), holdout, 7).unwrap(),
            ];
            assert_eq!(file.graph.fingerprint(), memory.graph.fingerprint());
            // 40 triples, each of which is either walked or held out.
            assert_eq!(memory.graph.topology().num_triples(), 40 - held);
            let triples =
                |of: &TrainingGraph| of.validation.as_ref().map(|set| set.triples.clone()).unwrap_or_default();
            assert_eq!((triples(&file), triples(&memory).len()), (triples(&memory), held));
            assert!(triples(&memory).iter().all(|t| memory.graph.topology().triples().all(|walked| walked != *t)));
        }
    }
}
