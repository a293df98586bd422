//! The paper's tables of dataset sizes, with what the files at hand have.

use flock_eval::datasets::registry::{self, Counts, RegistryEntry};
use flock_eval::datasets::{Dataset, DatasetGroup, Split, check};
use flock_eval::sheet::Sheet;

use super::report::Section;
use super::work::Work;
use super::{Item, Report, ReproduceError};

/// The dataset statistics: a table per group.
pub(super) fn statistics(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::Statistics;
    let at_hand = if work.options.data.is_some() { work.graphs(item)?.datasets } else { Vec::new() };
    let mut report = Report::new(item);
    report.say("counts as the paper prints them; where files are at hand, `ours` counts what they have");
    report.say(format!("{} of {} graphs at hand", at_hand.len(), item.num_graphs()));
    let groups: [(&str, &str, &[DatasetGroup]); 3] = [
        ("", "Inductive in entities and relations", &[DatasetGroup::InductiveEr]),
        ("inductive-e", "Inductive in entities", &[DatasetGroup::InductiveE]),
        ("transductive", "Transductive", &[DatasetGroup::Transductive, DatasetGroup::Pretraining]),
    ];
    let mut done = 0;
    for (suffix, title, of) in groups {
        let header = [
            "dataset",
            "numbers",
            "train |V|",
            "train |R|",
            "train |E|",
            "valid |V|",
            "valid |R|",
            "valid |E|",
            "valid triples",
            "test |V|",
            "test |R|",
            "test |E|",
            "test triples",
            "sides",
        ];
        let mut rows = Vec::new();
        let entries = registry::entries().iter().filter(|e| of.contains(&e.group));
        for entry in entries {
            rows.push(row(entry, "published", entry.train, entry.valid, entry.test));
            if let Some(dataset) = at_hand.iter().find(|d| d.name == entry.name) {
                work.begin(entry.name, done, at_hand.len());
                done += 1;
                work.check_stop()?;
                let (train, valid, test) = counted(dataset)?;
                rows.push(row(entry, "ours", train, valid, test));
            }
        }
        let sheet = Sheet { header: header.map(String::from).to_vec(), rows };
        report.sections.push(
            Section::new(suffix, title, sheet)
                .note("–: not stated in the paper. |V|, |R| of valid and test count candidates, as the tables do."),
        );
    }
    Ok(report)
}

fn counted(dataset: &Dataset) -> Result<([u64; 3], Counts, Counts), ReproduceError> {
    let train = check::train_counts(dataset)?;
    let set = |split: Split| Ok::<_, ReproduceError>(check::set_counts(&dataset.test_set(split)?));
    Ok((train, set(Split::Valid)?, set(Split::Test)?))
}

fn row(entry: &RegistryEntry, numbers: &str, train: [u64; 3], valid: Counts, test: Counts) -> Vec<String> {
    let count = |n: u64| if n == 0 && numbers == "published" { "–".to_string() } else { n.to_string() };
    let mut row = vec![entry.name.to_string(), numbers.to_string()];
    row.extend(train.map(count));
    for c in [valid, test] {
        row.extend([c.entities, c.relations, c.triples, c.predicted].map(count));
    }
    row.push(if entry.protocol.heads { "h/t" } else { "t" }.to_string());
    row
}
