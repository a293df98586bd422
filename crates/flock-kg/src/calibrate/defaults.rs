//! Default calibrations: what a model's logits mean on graphs that it was not trained on and that nobody calibrated it on.
//!
//! Held-out triples of several graphs are asked for, and one map is fitted to all samples, each graph with the same weight. What
//! to expect on a new graph is measured by leaving one out: a map fitted to the others, tried on the one that was left out. The
//! file is kept beside the model: `MODEL.calibration.json` for `MODEL.safetensors`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CalibrationError, HeldOut, Isotonic, bins, expected_error};
use flock_model::files::write_atomically;

const VERSION: u32 = 1;

/// The default calibrations of one model, for several numbers of passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefaultCalibrations {
    version: u32,
    /// SHA-256 of the model's checkpoint.
    pub model: String,
    /// By ascending number of passes.
    by_passes: Vec<DefaultCalibration>,
}

/// What a model's logits mean on graphs in general, for one number of passes and the base walks of the model's own rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefaultCalibration {
    /// Passes it was made with.
    pub passes: u32,
    /// Mean expected calibration error of σ(logit), over the graphs.
    pub error_before: f64,
    /// The same of the map, on each graph with a map fitted to the others: what to expect on a new graph.
    pub error_after: f64,
    /// True answers of a question that no walk reached, in the mean over the graphs.
    pub missed: f64,
    /// The graphs it was made on.
    pub graphs: Vec<LeftOutGraph>,
    /// The map.
    pub map: Isotonic,
}

/// One of the graphs, and how well the others foretell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutGraph {
    /// Its name.
    pub name: String,
    /// Base walk count `n`.
    pub walks: u32,
    /// Questions asked.
    pub queries: usize,
    /// Candidates looked at.
    pub samples: usize,
    /// How many of them were true.
    pub positives: usize,
    /// Expected calibration error of σ(logit).
    pub error_before: f64,
    /// Expected calibration error of a map fitted to the other graphs.
    pub error_after: f64,
}

impl DefaultCalibration {
    /// Fits one map to several graphs, by name. All were asked of one model with the same number of passes.
    ///
    /// # Errors
    /// Fewer than two graphs, or graphs asked in different ways.
    pub fn fit(graphs: &[(String, HeldOut)]) -> Result<DefaultCalibration, CalibrationError> {
        let [(_, first), _, ..] = graphs else { return Err(CalibrationError::TooFewGraphs { found: graphs.len() }) };
        if graphs.iter().any(|(_, held)| (&held.model, held.passes) != (&first.model, first.passes)) {
            return Err(CalibrationError::MixedGraphs);
        }
        let left_out = |i: usize| {
            let (name, held) = &graphs[i];
            let map = pooled(graphs.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, (_, held))| held));
            LeftOutGraph {
                name: name.clone(),
                walks: held.walks,
                queries: held.samples.len(),
                samples: held.all().count(),
                positives: held.all().filter(|s| s.1).count(),
                error_before: expected_error(&held.before()),
                error_after: expected_error(&bins(held.all().map(|(logit, truth)| (map.at(logit), truth)))),
            }
        };
        let each: Vec<LeftOutGraph> = (0..graphs.len()).map(left_out).collect();
        let mean = |of: &dyn Fn(usize) -> f64| (0..graphs.len()).map(of).sum::<f64>() / graphs.len() as f64;
        Ok(DefaultCalibration {
            passes: first.passes,
            error_before: mean(&|i| each[i].error_before),
            error_after: mean(&|i| each[i].error_after),
            missed: mean(&|i| graphs[i].1.missed()),
            map: pooled(graphs.iter().map(|(_, held)| held)),
            graphs: each,
        })
    }

    /// The graph that the others foretell worst.
    pub fn worst(&self) -> Option<&LeftOutGraph> {
        self.graphs.iter().max_by(|a, b| a.error_after.total_cmp(&b.error_after))
    }

    fn is_sound(&self) -> bool {
        self.passes > 0 && self.map.is_sound() && self.missed.is_finite() && self.missed >= 0.0
    }
}

/// One map for the samples of all, each graph with the same weight.
fn pooled<'h>(graphs: impl Iterator<Item = &'h HeldOut> + Clone) -> Isotonic {
    let total: usize = graphs.clone().map(|held| held.all().count()).sum();
    let each = total as f64 / graphs.clone().count() as f64;
    let weighted = graphs.flat_map(|held| {
        let weight = each / held.all().count() as f64;
        held.all().map(move |(logit, truth)| (logit, truth, weight))
    });
    Isotonic::fit_weighted(weighted.collect())
}

impl DefaultCalibrations {
    /// None yet, for a model by its hash.
    pub fn new(model: impl Into<String>) -> DefaultCalibrations {
        DefaultCalibrations { version: VERSION, model: model.into(), by_passes: Vec::new() }
    }

    /// Where the default calibrations of a model file are: beside it, `calibration.json` in place of its ending.
    pub fn path(model: &Path) -> PathBuf {
        model.with_extension("calibration.json")
    }

    /// Reads the text of a file; `file` is its name in errors.
    ///
    /// # Errors
    /// Text that is no such file.
    pub fn from_text(file: &str, text: &str) -> Result<DefaultCalibrations, CalibrationError> {
        let wrong = |what: String| CalibrationError::Format { file: file.to_string(), what };
        let read: DefaultCalibrations = serde_json::from_str(text).map_err(|e| wrong(format!("found {e}")))?;
        if read.version != VERSION {
            return Err(wrong(format!("found version {}", read.version)));
        }
        if !read.by_passes.iter().all(DefaultCalibration::is_sound) {
            return Err(wrong("found a map that is not ascending within 0 and 1".to_string()));
        }
        Ok(read)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of these.
    pub fn read_file(path: &Path) -> Result<DefaultCalibrations, CalibrationError> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| CalibrationError::Io { file: file.clone(), source })?;
        DefaultCalibrations::from_text(&file, &text)
    }

    /// The text of a file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("string keys and plain values are always JSON") + "\n"
    }

    /// Writes a file, whole or not at all: under a temporary name, flushed, renamed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), CalibrationError> {
        write_atomically(path, self.to_text().as_bytes())
            .map_err(|source| CalibrationError::Io { file: path.display().to_string(), source })
    }

    /// The one for about so many passes: made with the nearest number by ratio, the smaller of two that are as near.
    pub fn nearest(&self, passes: u32) -> Option<&DefaultCalibration> {
        // A ratio of at least one, as a fraction: a/b < c/d if ad < cb.
        let ratio = |c: &DefaultCalibration| (u64::from(c.passes.max(passes)), u64::from(c.passes.min(passes).max(1)));
        self.by_passes.iter().min_by(|a, b| {
            let ((a_over, a_under), (b_over, b_under)) = (ratio(a), ratio(b));
            (a_over * b_under).cmp(&(b_over * a_under)).then(a.passes.cmp(&b.passes))
        })
    }

    /// Keeps a calibration in place of an older one for the same number of passes.
    pub fn set(&mut self, calibration: DefaultCalibration) {
        self.by_passes.retain(|c| c.passes != calibration.passes);
        self.by_passes.push(calibration);
        self.by_passes.sort_by_key(|c| c.passes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One question for each ten samples at logit 0 or 1, so many of them true.
    fn held(model: &str, passes: u32, hits: &[(u32, usize)], missed: usize) -> HeldOut {
        let question = |&(logit, hits): &(u32, usize)| (0..10).map(|i| (f64::from(logit), i < hits)).collect();
        let samples = hits.iter().map(question).collect();
        HeldOut { model: model.to_string(), sizes: [9; 3], walks: 16, passes, samples, missed }
    }

    #[test]
    fn each_graph_has_the_same_weight() {
        // The first graph has one question of each kind, the second three: all of its samples count a third.
        let small = held("m", 1, &[(0, 0), (1, 4)], 1);
        let large = held("m", 1, &[(0, 2), (0, 2), (0, 2), (1, 10), (1, 10), (1, 10)], 0);
        let graphs = [("small".to_string(), small), ("large".to_string(), large)];
        let made = DefaultCalibration::fit(&graphs).unwrap();
        // 80 samples in all, 40 by weight from each graph: weights 2 and 2/3. At logit 0: 6 × 2/3 = 4 hits of 40; at 1: 8 + 20.
        assert!((made.map.at(0.0) - 4.5 / 41.0).abs() < 1e-9, "{:?}", made.map);
        assert!((made.map.at(1.0) - 28.5 / 41.0).abs() < 1e-9, "{:?}", made.map);
        // (1 + ½)/3 and ½/7.
        assert!((made.missed - (0.5 + 0.5 / 7.0) / 2.0).abs() < 1e-12);
        // Left out, the small one is foretold by the large: 6.5/31 for 0 of 10, and 30.5/31 for 4 of 10.
        let errors: f64 = (6.5 / 31.0 + 30.5 / 31.0 - 0.4) / 2.0;
        assert!((made.graphs[0].error_after - errors).abs() < 1e-9, "{:?}", made.graphs[0]);
        assert_eq!((made.graphs[1].queries, made.graphs[1].samples, made.graphs[1].positives), (6, 60, 36));
        let mean = (made.graphs[0].error_after + made.graphs[1].error_after) / 2.0;
        assert!((made.error_after - mean).abs() < 1e-12);
        let fit = |graphs: &[(String, HeldOut)]| DefaultCalibration::fit(graphs).unwrap_err().to_string();
        assert!(fit(&graphs[..1]).starts_with("found 1 graph, expected at least 2"));
        let mixed = [graphs[0].clone(), ("four".to_string(), held("m", 4, &[(0, 0); 4], 0))];
        assert!(fit(&mixed).contains("different models or with different passes"));
    }

    #[test]
    fn the_nearest_number_of_passes_is_taken() {
        let made = |passes| {
            let graphs = ["a", "b"].map(|name| (name.to_string(), held("m", passes, &[(0, 1), (1, 9)], 0)));
            DefaultCalibration::fit(&graphs).unwrap()
        };
        let mut all = DefaultCalibrations::new("m");
        assert!(all.nearest(1).is_none());
        for passes in [16, 1, 4, 4] {
            all.set(made(passes));
        }
        let nearest = |passes| all.nearest(passes).unwrap().passes;
        // 2 is as near to 1 as to 4, and 8 as near to 4 as to 16: the smaller.
        let asked = [0, 1, 2, 3, 4, 8, 9, 16, 4096];
        assert_eq!(asked.map(nearest), [1, 1, 1, 4, 4, 4, 16, 16, 16]);
        // The file comes back as it was, and others are refused by name.
        assert_eq!(DefaultCalibrations::from_text("f", &all.to_text()).unwrap(), all);
        let refused = |text: &str| DefaultCalibrations::from_text("f.json", text).unwrap_err().to_string();
        let other = all.to_text().replace("\"version\": 1", "\"version\": 7");
        assert_eq!(refused(&other), "f.json: found version 7, expected a calibration of version 1");
        assert!(refused("{").starts_with("f.json: found EOF"));
        assert!(refused(&all.to_text().replace("\"passes\": 4", "\"passes\": 0")).contains("not ascending"));
    }
}
