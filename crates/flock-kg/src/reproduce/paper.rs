//! Numbers that the paper prints without a row per graph: means over groups, speeds, accuracies. Those per graph are in
//! [`flock_eval::published`].

use flock_eval::datasets::DatasetGroup;

/// The groups of graphs in the paper's tables, in its order.
pub(super) const GROUPS: [DatasetGroup; 3] =
    [DatasetGroup::InductiveEr, DatasetGroup::InductiveE, DatasetGroup::Transductive];

/// The graphs that figures are means over: each inductive group, and both.
pub(super) const INDUCTIVE: [(&str, &[DatasetGroup]); 3] = [
    ("inductive_er", &[DatasetGroup::InductiveEr]),
    ("inductive_e", &[DatasetGroup::InductiveE]),
    ("all inductive", &[DatasetGroup::InductiveEr, DatasetGroup::InductiveE]),
];

/// A row of tab:flock-adaptive: mean |V| and |E| of the group, mean n of the rule, MRR and Hits@10 with the rule, and with
/// n = 128. The means of n of the first two groups stand in each other's row there, as the registry shows; they are put
/// right here.
pub(super) struct AdaptiveRow {
    pub graphs: usize,
    pub entities: f64,
    pub triples: f64,
    pub n: f64,
    pub rule: [f64; 2],
    pub fixed: [f64; 2],
}

/// tab:flock-adaptive, by group.
pub(super) const ADAPTIVE: [AdaptiveRow; 3] = [
    AdaptiveRow {
        graphs: 23,
        entities: 5303.0,
        triples: 10838.0,
        n: 18.08,
        rule: [0.369, 0.554],
        fixed: [0.357, 0.551],
    },
    AdaptiveRow {
        graphs: 18,
        entities: 7578.0,
        triples: 29090.0,
        n: 28.40,
        rule: [0.456, 0.604],
        fixed: [0.441, 0.596],
    },
    AdaptiveRow {
        graphs: 13,
        entities: 47810.0,
        triples: 387491.0,
        n: 214.15,
        rule: [0.340, 0.509],
        fixed: [0.334, 0.493],
    },
];

/// A model of tab:train-scalability (NVIDIA RTX A6000, batch 8; Flock with n = 16, P = 1): name, parameters, seconds per
/// batch, gigabytes.
pub(super) const TRAINING_SPEED: [(&str, u64, f64, f64); 3] =
    [("ULTRA", 168_705, 0.117, 2.110), ("TRIX", 87_138, 0.690, 3.442), ("Flock", 801_969, 1.30, 27.89)];

/// A row of tab:test-scalability (NVIDIA RTX A6000, batch 8).
pub(super) struct InferenceRow {
    pub model: &'static str,
    /// (n, P) of Flock.
    pub case: Option<(u32, u32)>,
    /// Seconds per batch.
    pub seconds: f64,
    /// Gigabytes.
    pub memory: f64,
}

/// tab:test-scalability.
pub(super) const INFERENCE_SPEED: [InferenceRow; 11] = [
    InferenceRow { model: "ULTRA", case: None, seconds: 0.073, memory: 0.848 },
    InferenceRow { model: "TRIX", case: None, seconds: 0.500, memory: 1.382 },
    InferenceRow { model: "Flock", case: Some((16, 1)), seconds: 1.26, memory: 2.868 },
    InferenceRow { model: "Flock", case: Some((16, 2)), seconds: 1.99, memory: 2.864 },
    InferenceRow { model: "Flock", case: Some((16, 4)), seconds: 3.24, memory: 3.938 },
    InferenceRow { model: "Flock", case: Some((16, 8)), seconds: 5.45, memory: 5.172 },
    InferenceRow { model: "Flock", case: Some((16, 16)), seconds: 9.45, memory: 8.892 },
    InferenceRow { model: "Flock", case: Some((128, 1)), seconds: 1.77, memory: 5.000 },
    InferenceRow { model: "Flock", case: Some((128, 2)), seconds: 2.80, memory: 7.880 },
    InferenceRow { model: "Flock", case: Some((128, 4)), seconds: 5.00, memory: 14.42 },
    InferenceRow { model: "Flock", case: Some((128, 8)), seconds: 10.05, memory: 43.68 },
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
