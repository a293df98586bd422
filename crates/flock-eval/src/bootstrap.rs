//! A paired bootstrap: is one model better than another on the same questions, and how sure is
//! that?
//!
//! Both sides of a triple are one draw. There are two intervals. *Over triples* keeps the graphs
//! and draws triples: how sure are we on these graphs? *Over graphs* draws graphs, and triples
//! within them: how sure are we on graphs like these?

use flock_walk::{Key, Stream};
use serde::Serialize;

use crate::ranks::{PairedDataset, Pairs};
use crate::sheet::Sheet;
use flock_model::checkpoint::Task;

/// Number of bootstrap draws.
pub const DRAWS: usize = 4_000;

/// The difference between two MRRs: ours minus theirs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MrrDifference {
    /// Name of the dataset, or what the mean is taken over.
    pub name: String,
    /// The task.
    pub task: Task,
    /// Number of datasets.
    pub datasets: usize,
    /// Number of triples.
    pub triples: usize,
    /// Our MRR.
    pub ours: f64,
    /// Their MRR.
    pub theirs: f64,
    /// Ours minus theirs.
    pub difference: f64,
    /// 95 % interval over triples of these graphs.
    pub over_triples: [f64; 2],
    /// 95 % interval over graphs and triples. `None` for a single dataset.
    pub over_graphs: Option<[f64; 2]>,
    /// Share of draws in which ours is ahead. Draws are of graphs and triples if there are several
    /// graphs.
    pub ahead: f64,
}

/// Computes the difference on each dataset, then of the mean of each task, then of the mean without
/// the datasets in `without`.
pub fn differences(pairs: &Pairs, without: &[String], seed: u64) -> Vec<MrrDifference> {
    let mut all = Vec::new();
    for task in [Task::Entity, Task::Relation] {
        let of_task: Vec<&PairedDataset> = pairs.datasets.iter().filter(|d| d.task == task).collect();
        for dataset in &of_task {
            all.push(difference(dataset.dataset.clone(), &[dataset], seed));
        }
        if of_task.len() > 1 {
            all.push(difference(format!("mean ({})", of_task.len()), &of_task, seed));
            let rest: Vec<&PairedDataset> = of_task.iter().copied().filter(|d| !without.contains(&d.dataset)).collect();
            if !rest.is_empty() && rest.len() < of_task.len() {
                let names: Vec<&str> =
                    without.iter().map(String::as_str).filter(|n| of_task.iter().any(|d| d.dataset == *n)).collect();
                all.push(difference(format!("mean without {} ({})", names.join(", "), rest.len()), &rest, seed));
            }
        }
    }
    all
}

/// Computes both MRRs over all sides of some triples.
fn mean(triples: impl Iterator<Item = (f64, f64, u32)>) -> (f64, f64) {
    let (mut ours, mut theirs, mut sides) = (0.0, 0.0, 0.0);
    for (a, b, count) in triples {
        (ours, theirs, sides) = (ours + a, theirs + b, sides + f64::from(count));
    }
    if sides > 0.0 { (ours / sides, theirs / sides) } else { (0.0, 0.0) }
}

/// Lays the differences out as a table.
pub fn sheet(differences: &[MrrDifference]) -> Sheet {
    let header = [
        "dataset",
        "task",
        "triples",
        "ours MRR",
        "theirs MRR",
        "difference",
        "95 % over triples",
        "95 % over graphs",
        "ours ahead",
    ];
    let interval = |i: &[f64; 2]| format!("{:+.4} to {:+.4}", i[0], i[1]);
    let row = |d: &MrrDifference| {
        vec![
            d.name.clone(),
            d.task.to_string(),
            d.triples.to_string(),
            format!("{:.4}", d.ours),
            format!("{:.4}", d.theirs),
            format!("{:+.4}", d.difference),
            interval(&d.over_triples),
            d.over_graphs.as_ref().map_or("–".to_string(), interval),
            format!("{:.1} %", 100.0 * d.ahead),
        ]
    };
    Sheet { header: header.map(String::from).to_vec(), rows: differences.iter().map(row).collect() }
}

fn resampled(dataset: &PairedDataset, stream: &mut Stream) -> f64 {
    let len = dataset.triples.len() as u64;
    let (ours, theirs) = mean((0..len).map(|_| dataset.triples[stream.below(len) as usize]));
    ours - theirs
}

fn difference(name: String, datasets: &[&PairedDataset], seed: u64) -> MrrDifference {
    let count = datasets.len() as f64;
    let means: Vec<(f64, f64)> = datasets.iter().map(|d| mean(d.triples.iter().copied())).collect();
    let ours = means.iter().map(|m| m.0).sum::<f64>() / count;
    let theirs = means.iter().map(|m| m.1).sum::<f64>() / count;
    let draw = |graphs: bool| -> Vec<f64> {
        let mut stream = Key { seed, pass: u32::from(graphs), update: 0, query: 0 }.stream(0);
        let mut one = || {
            let of = |i: usize, stream: &mut Stream| {
                let i = if graphs { stream.below(datasets.len() as u64) as usize } else { i };
                resampled(datasets[i], stream)
            };
            (0..datasets.len()).map(|i| of(i, &mut stream)).sum::<f64>() / count
        };
        let mut drawn: Vec<f64> = (0..DRAWS).map(|_| one()).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    };
    let interval = |drawn: &[f64]| [drawn[DRAWS / 40], drawn[DRAWS - 1 - DRAWS / 40]];
    let triples = draw(false);
    let graphs = (datasets.len() > 1).then(|| draw(true));
    let judged = graphs.as_ref().unwrap_or(&triples);
    let ahead = judged.iter().filter(|d| **d > 0.0).count() as f64 / DRAWS as f64;
    MrrDifference {
        name,
        task: datasets[0].task,
        datasets: datasets.len(),
        triples: datasets.iter().map(|d| d.triples.len()).sum(),
        ours,
        theirs,
        difference: ours - theirs,
        over_triples: interval(&triples),
        over_graphs: graphs.as_deref().map(interval),
        ahead,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(name: &str, triples: Vec<(f64, f64, u32)>) -> PairedDataset {
        PairedDataset { dataset: name.to_string(), task: Task::Entity, triples }
    }

    #[test]
    fn intervals_are_those_of_theory() {
        // 400 triples whose difference is +0.5 or −0.3 in turns: mean 0.1, standard error 0.4 /
        // √400 = 0.02.
        let triples: Vec<_> = (0..400).map(|i| if i % 2 == 0 { (1.0, 0.5, 1) } else { (0.2, 0.5, 1) }).collect();
        let [d] = &differences(&Pairs { datasets: vec![dataset("a", triples)], unpaired: 0 }, &[], 1)[..] else {
            panic!()
        };
        assert!((d.difference - 0.1).abs() < 1e-12 && (d.ours - 0.6).abs() < 1e-12 && d.over_graphs.is_none());
        let expected = [0.1 - 1.96 * 0.02, 0.1 + 1.96 * 0.02];
        for (found, expected) in d.over_triples.iter().zip(expected) {
            assert!((found - expected).abs() < 0.004, "{:?}", d.over_triples);
        }
        assert_eq!(d.ahead, 1.0);
    }

    #[test]
    fn graphs_count_alike_and_can_be_left_out() {
        // Ours is ahead by 0.2 on one small graph, behind by 0.1 on a large one, level on the
        // third.
        let sets = vec![
            dataset("small", vec![(0.5, 0.3, 1); 10]),
            dataset("large", vec![(1.0, 1.2, 2); 1_000]),
            dataset("level", vec![(0.4, 0.4, 1); 50]),
        ];
        let all = differences(&Pairs { datasets: sets, unpaired: 0 }, &["small".to_string()], 1);
        assert_eq!(
            all.iter().map(|d| &d.name[..]).collect::<Vec<_>>(),
            ["small", "large", "level", "mean (3)", "mean without small (2)"]
        );
        assert!((all[1].difference + 0.1).abs() < 1e-12, "two sides a triple: (1.0 − 1.2) / 2");
        assert!((all[3].difference - 0.1 / 3.0).abs() < 1e-12 && (all[4].difference + 0.05).abs() < 1e-12);
        // Triples of a graph are all alike, so only the choice of graphs is uncertain: from all
        // `large` to all `small`.
        assert!((all[3].over_triples[0] - all[3].over_triples[1]).abs() < 1e-12);
        let [low, high] = all[3].over_graphs.unwrap();
        assert!((low + 0.1).abs() < 1e-9 && (high - 0.2).abs() < 1e-9, "{low} {high}");
        assert!((0.4..0.8).contains(&all[3].ahead));
    }
}
