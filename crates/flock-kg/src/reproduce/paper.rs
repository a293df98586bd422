//! Numbers that the paper prints without a row per graph: means over groups, speeds, accuracies. Those per graph are in
//! [`flock_eval::published`].

use flock_eval::datasets::DatasetGroup;

/// The groups of graphs in the paper's tables, in its order.
pub(super) const GROUPS: [DatasetGroup; 3] =
    [DatasetGroup::InductiveEr, DatasetGroup::InductiveE, DatasetGroup::Transductive];

/// A row of tab:flock-adaptive: mean |V| and |E| of the group, mean n of the rule, MRR and Hits@10 with the rule, and with
/// n = 128. The means of n of the first two groups stand in each other's row there, as the registry shows; they are put
/// right here.
pub(super) struct AdaptiveRow {
    pub entities: f64,
    pub triples: f64,
    pub n: f64,
    pub rule: [f64; 2],
    pub fixed: [f64; 2],
}

/// tab:flock-adaptive, by group.
pub(super) const ADAPTIVE: [AdaptiveRow; 3] = [
    AdaptiveRow { entities: 5303.0, triples: 10838.0, n: 18.08, rule: [0.369, 0.554], fixed: [0.357, 0.551] },
    AdaptiveRow { entities: 7578.0, triples: 29090.0, n: 28.40, rule: [0.456, 0.604], fixed: [0.441, 0.596] },
    AdaptiveRow { entities: 47810.0, triples: 387491.0, n: 214.15, rule: [0.340, 0.509], fixed: [0.334, 0.493] },
];

/// A model of tab:train-scalability (NVIDIA RTX A6000, batch 8; Flock with n = 16, P = 1): name, parameters, seconds per
/// batch, gigabytes.
pub(super) const TRAINING_SPEED: [(&str, u64, f64, f64); 3] =
    [("ULTRA", 168_705, 0.117, 2.110), ("TRIX", 87_138, 0.690, 3.442), ("Flock", 801_969, 1.30, 27.89)];

/// A row of tab:test-scalability (NVIDIA RTX A6000, batch 8): name, (n, P) for Flock, seconds per batch, gigabytes.
pub(super) const INFERENCE_SPEED: [(&str, Option<(u32, u32)>, f64, f64); 11] = [
    ("ULTRA", None, 0.073, 0.848),
    ("TRIX", None, 0.500, 1.382),
    ("Flock", Some((16, 1)), 1.26, 2.868),
    ("Flock", Some((16, 2)), 1.99, 2.864),
    ("Flock", Some((16, 4)), 3.24, 3.938),
    ("Flock", Some((16, 8)), 5.45, 5.172),
    ("Flock", Some((16, 16)), 9.45, 8.892),
    ("Flock", Some((128, 1)), 1.77, 5.000),
    ("Flock", Some((128, 2)), 2.80, 7.880),
    ("Flock", Some((128, 4)), 5.00, 14.42),
    ("Flock", Some((128, 8)), 10.05, 43.68),
];

/// tab:synthetic-exp-results: accuracy on Petals, percent.
pub(super) const PETALS: [(&str, f64); 4] =
    [("ULTRA", 50.0), ("MOTIF (paths of 3)", 50.0), ("TRIX", 50.0), ("Flock", 100.0)];

/// A row of tab:hyperparameter: what, and its values for entities and relations.
pub(super) const HYPERPARAMETERS: [(&str, &str, &str); 18] = [
    ("walk length ℓ", "128", "128"),
    ("base walks in pretraining", "128", "128"),
    ("base walks in tests and fine-tuning", "16 to 512", "16 to 512"),
    ("layers of the sequence processor", "1", "1"),
    ("hidden width", "64", "64"),
    ("consensus heads", "4", "4"),
    ("width of a head", "16", "16"),
    ("updates", "6", "6"),
    ("most passes", "16", "16"),
    ("optimiser", "AdamW", "AdamW"),
    ("learning rate", "0.0005", "0.0005"),
    ("steps of pretraining", "400000", "40000"),
    ("adversarial temperature", "1", "1"),
    ("negatives in pretraining", "512", "512"),
    ("batch of pretraining", "8", "8"),
    ("weight decay", "0.01", "0"),
    ("negatives in fine-tuning", "256", "256"),
    ("batch of fine-tuning", "4 to 32", "4 to 8"),
];
