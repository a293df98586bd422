//! Tables of models that are pretrained for them, all under one budget: ablations, and mixes of pretraining graphs.
//!
//! The published budget is 400,000 steps of 128 base walks. A smaller one is stated in the report: so many steps, or so many minutes,
//! of each model.

use std::fmt;
use std::path::PathBuf;

use flock_eval::Evaluation;
use flock_eval::chart::{self, Axis, Series};
use flock_eval::datasets::{Dataset, DatasetGroup};
use flock_eval::difference::Difference;
use flock_eval::sheet::Sheet;
use flock_train::config::WalkCount;
use flock_train::{Settings, TrainConfig, departures};

use super::paper::{GROUPS, INDUCTIVE};
use super::report::Section;
use super::scores::group_mean;
use super::work::{TrainedModel, Work};
use super::{Item, PRETRAINING_MIX, Report, ReproduceError};

/// A row of the ablation table: a model, and how it differs from the full one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AblationRow {
    /// The published model.
    Full,
    /// Walks may step straight back.
    Backtracking,
    /// Walks of 64 positions.
    HalfLength,
    /// Walks of 256 positions.
    DoubleLength,
    /// All walks start at the query.
    StartsAtQuery,
    /// A transformer reads the walks.
    Transformer,
    /// Plain averages instead of softmax-weighted ones.
    MeanConsensus,
    /// Twice the width. Not in the paper.
    DoubleWidth,
    /// Walks of 256 positions and twice the width: whether the width is what limits longer walks. Not in the paper.
    DoubleLengthAndWidth,
}

impl AblationRow {
    /// All rows: those of the paper first, in its order.
    pub const ALL: [AblationRow; 9] = [
        AblationRow::Full,
        AblationRow::Backtracking,
        AblationRow::HalfLength,
        AblationRow::DoubleLength,
        AblationRow::StartsAtQuery,
        AblationRow::Transformer,
        AblationRow::MeanConsensus,
        AblationRow::DoubleWidth,
        AblationRow::DoubleLengthAndWidth,
    ];

    /// How many of them the paper has.
    pub const PAPER: usize = 7;

    /// Returns the name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            AblationRow::Full => "full",
            AblationRow::Backtracking => "backtracking",
            AblationRow::HalfLength => "length-64",
            AblationRow::DoubleLength => "length-256",
            AblationRow::StartsAtQuery => "starts-at-query",
            AblationRow::Transformer => "transformer",
            AblationRow::MeanConsensus => "mean-consensus",
            AblationRow::DoubleWidth => "width-128",
            AblationRow::DoubleLengthAndWidth => "length-256-width-128",
        }
    }

    /// Returns its title in the paper's table.
    fn title(self) -> &'static str {
        match self {
            AblationRow::Full => "Flock (ℓ = 128)",
            AblationRow::Backtracking => "w/o non-backtracking",
            AblationRow::HalfLength => "ℓ = 64",
            AblationRow::DoubleLength => "ℓ = 256",
            AblationRow::StartsAtQuery => "w/o diverse starts",
            AblationRow::Transformer => "transformer",
            AblationRow::MeanConsensus => "w/o weighted consensus",
            AblationRow::DoubleWidth => "width 128 (not in the paper)",
            AblationRow::DoubleLengthAndWidth => "ℓ = 256, width 128 (not in the paper)",
        }
    }

    /// Returns MRR and Hits@10 of the three groups as tab:ablation prints them, and the printed mean of the groups' MRRs.
    fn published(self) -> Option<([[f64; 2]; 3], f64)> {
        Some(match self {
            AblationRow::Full => ([[0.369, 0.554], [0.456, 0.604], [0.360, 0.542]], 0.395),
            AblationRow::Backtracking => ([[0.370, 0.549], [0.456, 0.605], [0.334, 0.499]], 0.386),
            AblationRow::HalfLength => ([[0.372, 0.556], [0.459, 0.606], [0.351, 0.534]], 0.394),
            AblationRow::DoubleLength => ([[0.360, 0.548], [0.458, 0.605], [0.338, 0.508]], 0.385),
            AblationRow::StartsAtQuery => ([[0.360, 0.539], [0.448, 0.596], [0.319, 0.488]], 0.385),
            AblationRow::Transformer => ([[0.356, 0.542], [0.410, 0.591], [0.312, 0.477]], 0.359),
            AblationRow::MeanConsensus => ([[0.351, 0.526], [0.448, 0.593], [0.361, 0.515]], 0.387),
            AblationRow::DoubleWidth | AblationRow::DoubleLengthAndWidth => return None,
        })
    }

    /// Adds what differs from the full model.
    fn change(self, settings: &mut Settings) {
        let origin = self.name();
        match self {
            AblationRow::Full => {}
            AblationRow::Backtracking => settings.put(origin, "walks.backtrack", true),
            AblationRow::HalfLength => settings.put(origin, "model.length", 64),
            AblationRow::DoubleLength => settings.put(origin, "model.length", 256),
            AblationRow::StartsAtQuery => settings.put(origin, "walks.all_at_query", true),
            AblationRow::Transformer => settings.put(origin, "model.processor", "transformer"),
            AblationRow::MeanConsensus => settings.put(origin, "model.consensus", "mean"),
            AblationRow::DoubleWidth => settings.put(origin, "model.width", 128),
            AblationRow::DoubleLengthAndWidth => {
                settings.put(origin, "model.length", 256);
                settings.put(origin, "model.width", 128);
            }
        }
    }

    /// Finds a row by name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn parse(name: &str) -> Result<AblationRow, ReproduceError> {
        AblationRow::ALL.into_iter().find(|row| row.name() == name).ok_or_else(|| ReproduceError::Row {
            name: name.to_string(),
            known: AblationRow::ALL.map(AblationRow::name).join(", "),
        })
    }
}

impl fmt::Display for AblationRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The settings of a training that an item decides itself, or takes from its own options.
const DECIDED: [&str; 6] = ["task", "steps", "minutes", "threads", "data.graphs", "output.dir"];

/// Returns the settings of trainings that the caller gave.
pub(super) fn given_settings(work: &Work<'_>, item: Item) -> Result<Settings, ReproduceError> {
    let mut settings = work.options.training.clone();
    if let Some(key) = DECIDED.into_iter().find(|key| settings.get(key).is_some()) {
        return Err(ReproduceError::Setting { item, key });
    }
    if settings.get("seed").is_none() {
        settings.put("the seed", "seed", work.options.seed);
    }
    Ok(settings)
}

/// Says what of the trainings is not as published.
pub(super) fn departures_line<'d>(all: impl Iterator<Item = &'d Difference>) -> Option<String> {
    let mut lines: Vec<String> = all.map(|d| format!("{} = {}", d.key, d.new)).collect();
    lines.sort();
    lines.dedup();
    (!lines.is_empty()).then(|| format!("**not as published**: {}", lines.join(", ")))
}

/// A pretraining, and where it departs from the published one besides what its row is about.
struct Pretraining {
    config: TrainConfig,
    departures: Vec<Difference>,
}

/// The config of a pretraining on some graphs under the work's budget.
fn pretraining(
    work: &Work<'_>,
    item: Item,
    graphs: &[PathBuf],
    change: impl Fn(&mut Settings),
) -> Result<Pretraining, ReproduceError> {
    let mut settings = given_settings(work, item)?;
    settings.put(
        "the graphs at hand",
        "data.graphs",
        graphs.iter().map(|p| p.display().to_string()).collect::<Vec<_>>(),
    );
    add_budget(work, &mut settings);
    change(&mut settings);
    let config = TrainConfig::resolve(&settings, TrainConfig::pretraining)?;
    let mut published = Settings::new();
    change(&mut published);
    let published = TrainConfig::resolve_in_memory(&published, TrainConfig::pretraining)?;
    Ok(Pretraining { departures: departures(&published, &config), config })
}

/// Adds the steps or minutes of each training, if they are not the published ones.
pub(super) fn add_budget(work: &Work<'_>, settings: &mut Settings) {
    if let Some(steps) = work.options.steps {
        settings.put("the budget", "steps", steps);
    }
    if let Some(minutes) = work.options.minutes {
        settings.put("the budget", "minutes", minutes);
    }
    if let Some(threads) = work.options.threads {
        settings.put("the threads", "threads", threads);
    }
}

/// Says how long each model was trained, and with what.
fn describe_budget(work: &Work<'_>, config: &TrainConfig) -> String {
    let published = TrainConfig::pretraining(config.task);
    let budget = match (work.options.steps, work.options.minutes) {
        (None, None) => format!("{} steps", config.steps),
        (Some(steps), None) => format!("{steps} steps"),
        (None, Some(minutes)) => format!("{minutes} minutes"),
        (Some(steps), Some(minutes)) => format!("{steps} steps or {minutes} minutes, whichever is first"),
    };
    let walks = match config.walks.n {
        WalkCount::Fixed(n) => format!("n = {n}"),
        WalkCount::Rule(_) => {
            format!("n by the rule, {} at the training graphs' mean size", config.walks.n_train)
        }
    };
    format!(
        "each model: {budget}, batch {}, {walks}, seed {} (published: {} steps, batch {}, n = 128)",
        config.data.batch, config.seed, published.steps, published.data.batch
    )
}

/// A model of a table, with its results.
struct Retrained {
    trained: TrainedModel,
    parameters: u64,
    results: Vec<Evaluation>,
}

fn retrain(
    work: &Work<'_>,
    run: &str,
    title: &str,
    place: (usize, usize),
    config: &TrainConfig,
    datasets: &[Dataset],
) -> Result<Retrained, ReproduceError> {
    work.begin(&format!("pretraining: {title}"), place.0, place.1);
    let trained = work.train(run, config, None)?;
    let named = work.open(&trained)?;
    let results = work.evaluate_all(&format!("{title}: "), &named, datasets, &work.options.eval())?;
    Ok(Retrained { trained, parameters: named.model.meta().num_parameters(), results })
}

fn names(graphs: &[PathBuf]) -> String {
    let name = |p: &PathBuf| p.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    graphs.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// tab:ablation.
pub(super) fn ablations(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::Ablations;
    let (graphs, train_on) = (work.graphs(item)?, work.training_graphs(item)?);
    let rows = match &work.options.rows[..] {
        [] => AblationRow::ALL[..AblationRow::PAPER].to_vec(),
        rows => rows.to_vec(),
    };
    // All configs are made before the first training: a setting that is wrong is found now.
    let runs: Vec<Pretraining> =
        rows.iter().map(|row| pretraining(work, item, &train_on, |s| row.change(s))).collect::<Result<_, _>>()?;
    let mut done = Vec::new();
    for (i, (row, Pretraining { config, .. })) in rows.iter().zip(&runs).enumerate() {
        let run = format!("ablation-{}", row.name());
        done.push(retrain(work, &run, row.title(), (i, rows.len()), config, &graphs.datasets)?);
    }

    let mut report = Report::new(item);
    report.say(describe_budget(work, &runs[0].config));
    departures_line(runs.iter().flat_map(|run| &run.departures)).into_iter().for_each(|line| report.say(line));
    report.say(format!("pretrained on {}", names(&train_on)));
    report.say(work.options.describe());
    report.say(graphs.describe());
    let present: Vec<(usize, DatasetGroup)> =
        GROUPS.into_iter().enumerate().filter(|(_, g)| done[0].results.iter().any(|e| e.group == *g)).collect();
    let mut header = vec!["model".to_string(), "numbers".to_string()];
    for (_, group) in &present {
        let count = done[0].results.iter().filter(|e| e.group == *group).count();
        header.extend([format!("{group} ({count}) MRR"), format!("{group} ({count}) Hits@10")]);
    }
    header.extend(
        ["mean of groups MRR", "mean of groups Hits@10", "MRR against full", "steps", "minutes", "parameters"]
            .map(String::from),
    );
    let group_values = |r: &Retrained| -> Vec<[f64; 2]> {
        let of = |g: DatasetGroup| {
            [group_mean(&r.results, g, Evaluation::mrr), group_mean(&r.results, g, Evaluation::hits10)]
                .map(|x| x.unwrap_or(f64::NAN))
        };
        present.iter().map(|(_, g)| of(*g)).collect()
    };
    let mean_of = |values: &[[f64; 2]], m: usize| values.iter().map(|v| v[m]).sum::<f64>() / values.len() as f64;
    let mean = |values: &[[f64; 2]]| mean_of(values, 0);
    let line = |title: &str, numbers: &str, values: &[[f64; 2]], full: f64, rest: [String; 3]| {
        let mut row = vec![title.to_string(), numbers.to_string()];
        row.extend(values.iter().flatten().map(|v| format!("{v:.3}")));
        row.extend([0, 1].map(|m| format!("{:.3}", mean_of(values, m))));
        row.push(format!("{:+.3}", mean(values) - full));
        row.extend(rest);
        row
    };
    let full = rows.iter().position(|row| *row == AblationRow::Full);
    let ours_full = full.map_or(f64::NAN, |i| mean(&group_values(&done[i])));
    let theirs = |row: AblationRow| -> Option<Vec<[f64; 2]>> {
        row.published().map(|(values, _)| present.iter().map(|(i, _)| values[*i]).collect())
    };
    let theirs_full = theirs(AblationRow::Full).map_or(f64::NAN, |v| mean(&v));
    let (mut sheet, mut bars) = (Vec::new(), Vec::new());
    for (row, r) in rows.iter().zip(&done) {
        let values = group_values(r);
        let rest = [r.trained.steps.to_string(), format!("{:.1}", r.trained.minutes), r.parameters.to_string()];
        sheet.push(line(row.title(), "ours", &values, ours_full, rest));
        let mut pair = vec![mean(&values)];
        if let Some(values) = theirs(*row) {
            sheet.push(line(row.title(), "published", &values, theirs_full, ["–"; 3].map(String::from)));
            pair.push(mean(&values));
        }
        bars.push((row.title().to_string(), pair));
    }
    let mut section = Section::new("", "By group", Sheet { header, rows: sheet })
        .note("`mean of groups` is the mean of the groups' means, as in the paper's table; published means are over its 46 graphs.");
    if rows.contains(&AblationRow::StartsAtQuery) {
        section = section.note(
            "The paper prints 0.385 as the mean of w/o diverse starts, which is that of ℓ = 256; its groups give 0.376.",
        );
    }
    report.sections.push(section);
    report.sections.push(per_graph("model", rows.iter().map(|r| r.title()).zip(&done)));
    let series = ["ours", "published"].map(String::from);
    report.draw(
        "",
        item.title(),
        chart::bars(item.title(), &report.protocol[0], "MRR, mean of groups", &series, &bars),
    );
    report.keep(done.into_iter().flat_map(|r| r.results).collect());
    Ok(report)
}

/// A row per graph, a column per model.
fn per_graph<'r>(what: &str, models: impl Iterator<Item = (&'r str, &'r Retrained)>) -> Section {
    let models: Vec<(&str, &Retrained)> = models.collect();
    let mut header = vec!["dataset".to_string()];
    header.extend(models.iter().map(|(title, _)| format!("{title} MRR")));
    let graphs = models.first().map_or(0, |(_, r)| r.results.len());
    let row = |i: usize| {
        let mut row = vec![models[0].1.results[i].dataset.clone()];
        row.extend(models.iter().map(|(_, r)| format!("{:.3}", r.results[i].mrr())));
        row
    };
    Section::new("graphs", format!("By graph and {what}"), Sheet { header, rows: (0..graphs).map(row).collect() })
}

/// fig:pretrain_scaling: models pretrained on the first 1, 2, … graphs.
pub(super) fn mix(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::PretrainingMix;
    let (graphs, train_on) = (work.graphs(item)?, work.training_graphs(item)?);
    // The paper has no mix of seven of its eight graphs.
    let is_paper = work.options.train_on.is_empty() && train_on.len() == PRETRAINING_MIX.len();
    let sizes: Vec<usize> = (1..=train_on.len()).filter(|k| !is_paper || *k != 7).collect();
    let runs: Vec<Pretraining> =
        sizes.iter().map(|k| pretraining(work, item, &train_on[..*k], |_| {})).collect::<Result<_, _>>()?;
    let mut done = Vec::new();
    for (i, (k, Pretraining { config, .. })) in sizes.iter().zip(&runs).enumerate() {
        let (title, run) = (format!("{k} of {} graphs", train_on.len()), format!("mix-{k}"));
        done.push(retrain(work, &run, &title, (i, runs.len()), config, &graphs.datasets)?);
    }

    let mut report = Report::new(item);
    report.say(describe_budget(work, &runs[0].config));
    departures_line(runs.iter().flat_map(|run| &run.departures)).into_iter().for_each(|line| report.say(line));
    report.say(format!("mixes grow in this order: {}", names(&train_on)));
    report.say(work.options.describe());
    report.say(graphs.describe());
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (name, groups) in INDUCTIVE {
        let count = done[0].results.iter().filter(|e| groups.contains(&e.group)).count();
        if count == 0 {
            continue;
        }
        let mut points = Vec::new();
        for (k, r) in sizes.iter().zip(&done) {
            let of = |value: fn(&Evaluation) -> f64| {
                r.results.iter().filter(|e| groups.contains(&e.group)).map(value).sum::<f64>() / count as f64
            };
            let mut row = vec![name.to_string(), count.to_string(), k.to_string()];
            row.extend([of(Evaluation::mrr), of(Evaluation::hits10)].map(|x| format!("{x:.4}")));
            row.extend([r.trained.steps.to_string(), format!("{:.1}", r.trained.minutes)]);
            rows.push(row);
            points.push((*k as f64, of(Evaluation::mrr)));
        }
        let bold = name.starts_with("all");
        series.push(Series { name: format!("{name} ({count})"), points, bold, ..Series::default() });
    }
    let header =
        ["graphs", "number", "pretraining graphs", "MRR", "Hits@10", "steps", "minutes"].map(String::from).to_vec();
    report.sections.push(Section::new("", "Means over graphs", Sheet { header, rows }).note(
        "The paper shows this as a figure without numbers: MRR rises with each of 1, 2, 3, 4, 5, 6 and 8 graphs.",
    ));
    let titles: Vec<String> = sizes.iter().map(|k| format!("{k} graph{}", if *k == 1 { "" } else { "s" })).collect();
    report.sections.push(per_graph("number of pretraining graphs", titles.iter().map(String::as_str).zip(&done)));
    let axis = Axis { ticks: sizes.iter().map(|k| *k as f64).collect(), ..Axis::linear("pretraining graphs") };
    report.draw(
        "",
        item.title(),
        chart::lines(item.title(), &report.protocol[0], &axis, &Axis::linear("MRR"), &series),
    );
    report.keep(done.into_iter().flat_map(|r| r.results).collect());
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_means_are_means_of_groups_but_for_one_row() {
        for row in &AblationRow::ALL[..AblationRow::PAPER] {
            let (groups, printed) = row.published().unwrap();
            let mean = groups.iter().map(|g| g[0]).sum::<f64>() / 3.0;
            assert_eq!((mean - printed).abs() < 0.0011, *row != AblationRow::StartsAtQuery, "{row}: {mean} {printed}");
        }
    }

    #[test]
    fn rows_are_found_by_name() {
        for row in AblationRow::ALL {
            assert_eq!(AblationRow::parse(row.name()).unwrap(), row);
        }
        let error = AblationRow::parse("length-512").unwrap_err().to_string();
        assert!(error.starts_with("ablations: no row is called \"length-512\"; there are full, "), "{error}");
    }
}
