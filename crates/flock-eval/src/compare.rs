//! Our numbers beside published ones: a table with differences, the best of each row, and means
//! over groups.

use crate::datasets::{DatasetGroup, Split, registry};
use crate::metrics::RankMetrics;
use crate::published::PublishedNumbers;
use crate::results::Evaluation;
use crate::seeds::{SeedSummary, by_dataset};
use crate::sheet::Sheet;

/// How a comparison is laid out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// For people: the best value is marked by the text before and after it.
    Marked(&'static str, &'static str),
    /// For programs: plain numbers, a column that names the best, and differences from every
    /// system.
    Plain,
}

/// Says how our triples differ from those of published numbers, which are all test triples. `None`
/// if they do not differ.
pub fn caveat(results: &[&Evaluation]) -> Option<String> {
    // Seeds of a dataset share their triples.
    let results: Vec<&Evaluation> = by_dataset(results).iter().map(|runs| runs[0]).collect();
    let valid = results.iter().filter(|e| e.split == Split::Valid).count();
    let sampled = results.iter().filter(|e| e.protocol.sampled < e.protocol.of).count();
    let graphs = |count: usize| match count == results.len() {
        true => String::new(),
        false => format!(" on {count} of {} graphs", results.len()),
    };
    let mut parts = Vec::new();
    if valid > 0 {
        parts.push(format!("validation triples{}", graphs(valid)));
    }
    if sampled > 0 {
        parts.push(format!("a sample{}", graphs(sampled)));
    }
    let ours = parts.join(", ");
    (!parts.is_empty()).then(|| format!("not the same triples: ours are of {ours}, published ones of all test triples"))
}

/// Returns the name of our columns.
fn ours(results: &[&Evaluation]) -> &'static str {
    let valid = results.iter().any(|e| e.split == Split::Valid);
    let sampled = results.iter().any(|e| e.protocol.sampled < e.protocol.of);
    match (valid, sampled) {
        (false, false) => "ours",
        (true, false) => "ours (validation)",
        (false, true) => "ours (sample)",
        (true, true) => "ours (validation, sample)",
    }
}

/// A row to be: our metrics over the seeds of its datasets, and what is published.
struct ComparedRow<'a> {
    name: String,
    runs: Vec<&'a Evaluation>,
    values: Vec<Option<f64>>, // for each metric: ours, then those of each system
}

impl ComparedRow<'_> {
    /// The deviation over seeds, if there are several.
    fn deviation(&self) -> Option<RankMetrics> {
        SeedSummary::new(&self.runs).filter(|s| s.seeds.len() > 1).map(|s| s.deviation)
    }
}

/// Puts our results beside published ones. Runs of a dataset with several seeds make one row, with
/// their mean and standard deviation. Rows are sorted by group, then as in `results`. A group
/// with more than one published dataset ends with its mean, and the table ends with the mean over
/// all of them.
pub fn compare(results: &[&Evaluation], published: &PublishedNumbers, style: Style) -> Sheet {
    let mut header = vec!["dataset".to_string()];
    let datasets = by_dataset(results);
    let (ours, several) = (ours(results), datasets.iter().any(|runs| runs.len() > 1));
    let from: Vec<usize> = match style {
        Style::Plain => (0..published.systems.len()).collect(),
        Style::Marked(..) => published.systems.len().checked_sub(1).into_iter().collect(),
    };
    for metric in &published.metrics {
        let title = |system: &str| format!("{system} {}", metric.title());
        header.push(title(ours));
        if several && style == Style::Plain {
            header.push(title(&format!("{ours} ±")));
        }
        header.extend(published.systems.iter().map(|s| title(s)));
        let of = if style == Style::Plain { format!(" {}", metric.title()) } else { String::new() };
        header.extend(from.iter().map(|s| format!("{ours} − {}{of}", published.systems[*s])));
        if style == Style::Plain {
            header.push(format!("best {}", metric.title()));
        }
    }
    let shape = (published, &from[..], style, several);
    let mut rows = Vec::new();
    let mut all: Vec<ComparedRow<'_>> = Vec::new();
    for group in DatasetGroup::ALL {
        let mut of_group = Vec::new();
        for runs in datasets.iter().filter(|runs| runs[0].group == group) {
            let compared =
                ComparedRow { name: runs[0].dataset.clone(), runs: runs.clone(), values: values(runs, published) };
            rows.push(row(&compared, shape));
            if published.row(&compared.name).is_some() {
                of_group.push(compared);
            }
        }
        if of_group.len() > 1 {
            rows.push(row(&mean(format!("mean {group} ({})", of_group.len()), &of_group), shape));
        }
        // A mean over graphs that the model was trained on and graphs that it was not would say
        // little.
        if group != DatasetGroup::Pretraining {
            all.extend(of_group);
        }
    }
    if all.len() > 1 {
        rows.push(row(&mean(format!("mean ({})", all.len()), &all), shape));
    }
    Sheet { header, rows }
}

/// Means over groups, as the paper's main tables have them. Each system has three rows: what `printed` returns for it (all graphs of
/// the group, or of all but the pretraining graphs if there is none), the mean of its printed values over those graphs, and that
/// over the graphs of `results`. Ours come last.
pub fn by_group(
    results: &[&Evaluation],
    published: &PublishedNumbers,
    printed: impl Fn(&str, Option<DatasetGroup>) -> Option<[f64; 2]>,
) -> Sheet {
    let groups: Vec<DatasetGroup> = DatasetGroup::ALL.into_iter().filter(|g| *g != DatasetGroup::Other).collect();
    let mut columns: Vec<(String, Vec<DatasetGroup>)> = groups.iter().map(|g| (g.to_string(), vec![*g])).collect();
    let total = groups.iter().copied().filter(|g| *g != DatasetGroup::Pretraining).collect();
    columns.push(("all but pretraining".to_string(), total));
    let all: Vec<(DatasetGroup, &[Option<f64>])> =
        published.datasets().filter_map(|name| Some((registry::find(name)?.group, published.row(name)?))).collect();
    // Graphs without published numbers would make means of different graphs.
    let ours: Vec<(&Evaluation, &[Option<f64>])> =
        results.iter().filter_map(|e| Some((*e, published.row(&e.dataset)?))).collect();
    columns.retain(|(_, of)| ours.iter().any(|(e, _)| of.contains(&e.group)));
    let mut header = vec!["model".to_string(), "graphs".to_string()];
    for (name, groups) in &columns {
        let have = ours.iter().filter(|(e, _)| groups.contains(&e.group)).count();
        let of = all.iter().filter(|(group, _)| groups.contains(group)).count();
        header.extend(published.metrics.iter().map(|m| format!("{name} ({have} of {of}) {}", m.title())));
    }
    let mean = |values: Vec<Option<f64>>| {
        let values: Option<Vec<f64>> = values.into_iter().collect();
        let values = values.filter(|v| !v.is_empty());
        values.map_or("–".to_string(), |v| format!("{:.3}", v.iter().sum::<f64>() / v.len() as f64))
    };
    let systems = published.systems.len();
    let mut rows = Vec::new();
    for (s, system) in published.systems.iter().enumerate() {
        let row = |of: &str| vec![system.clone(), of.to_string()];
        let (mut as_printed, mut whole, mut same) = (row("all, as printed"), row("all"), row("these"));
        for (_, groups) in &columns {
            let group = if let [group] = groups[..] { Some(group) } else { None };
            for m in 0..published.metrics.len() {
                let at = m * systems + s;
                as_printed
                    .push(printed(system, group).map_or("–".to_string(), |means| format!("{:.3}", means[m.min(1)])));
                whole.push(mean(all.iter().filter(|(g, _)| groups.contains(g)).map(|(_, v)| v[at]).collect()));
                same.push(mean(ours.iter().filter(|(e, _)| groups.contains(&e.group)).map(|(_, v)| v[at]).collect()));
            }
        }
        rows.extend([as_printed, whole, same]);
    }
    let mut row = vec![self::ours(results).to_string(), "these".to_string()];
    for (_, groups) in &columns {
        for metric in &published.metrics {
            let of = ours.iter().filter(|(e, _)| groups.contains(&e.group));
            row.push(mean(of.map(|(e, _)| Some(metric.of(&e.summary.all.pessimistic))).collect()));
        }
    }
    rows.push(row);
    Sheet { header, rows }
}

/// Collects the values of a row. For each metric: ours, then those of each system.
fn values(runs: &[&Evaluation], published: &PublishedNumbers) -> Vec<Option<f64>> {
    let ours: Vec<RankMetrics> = runs.iter().map(|e| e.summary.all.pessimistic).collect();
    let ours = RankMetrics::mean(&ours);
    let theirs = published.row(&runs[0].dataset);
    let systems = published.systems.len();
    let mut values = Vec::new();
    for (i, metric) in published.metrics.iter().enumerate() {
        values.push(Some(metric.of(&ours)));
        values.extend((0..systems).map(|s| theirs.and_then(|t| t[i * systems + s])));
    }
    values
}

/// Averages each column. A column with a missing value has no mean, because it would be over other
/// datasets.
fn mean<'a>(name: String, rows: &[ComparedRow<'a>]) -> ComparedRow<'a> {
    let width = rows.first().map_or(0, |row| row.values.len());
    let column = |i: usize| rows.iter().map(|row| row.values[i]).collect::<Option<Vec<f64>>>();
    let values = (0..width).map(|i| column(i).map(|v| v.iter().sum::<f64>() / v.len() as f64)).collect();
    ComparedRow { name, runs: rows.iter().flat_map(|row| row.runs.iter().copied()).collect(), values }
}

/// Writes a row. `shape` has the published numbers, the systems that differences are taken from,
/// the style, and whether there are several seeds.
fn row(compared: &ComparedRow<'_>, shape: (&PublishedNumbers, &[usize], Style, bool)) -> Vec<String> {
    let (published, from, style, several) = shape;
    let round = |v: f64| (v * 1000.0).round();
    let deviation = compared.deviation();
    let mut cells = vec![compared.name.clone()];
    for (metric, values) in published.metrics.iter().zip(compared.values.chunks(published.systems.len() + 1)) {
        let best = values.iter().flatten().map(|v| round(*v)).fold(f64::NEG_INFINITY, f64::max);
        let alone = values.iter().flatten().count() < 2;
        let is_best = |v: &Option<f64>| !alone && v.is_some_and(|v| round(v) == best);
        let ours = cells.len();
        cells.extend(values.iter().map(|v| match (v, style) {
            (None, Style::Plain) => String::new(),
            (None, _) => "–".to_string(),
            (Some(x), Style::Marked(before, after)) if is_best(v) => format!("{before}{x:.3}{after}"),
            (Some(x), _) => format!("{x:.3}"),
        }));
        let deviation = deviation.as_ref().map(|d| format!("{:.3}", metric.of(d)));
        match (style, deviation) {
            (Style::Plain, deviation) if several => cells.insert(ours + 1, deviation.unwrap_or_default()),
            (Style::Marked(..), Some(deviation)) => cells[ours] += &format!(" ± {deviation}"),
            _ => {}
        }
        let difference = |s: &usize| values[0].zip(values[s + 1]).map(|(ours, theirs)| ours - theirs);
        let none = if style == Style::Plain { "" } else { "–" };
        cells.extend(from.iter().map(|s| difference(s).map_or(none.to_string(), |d| format!("{d:+.3}"))));
        if style == Style::Plain {
            let names = std::iter::once("ours").chain(published.systems.iter().map(String::as_str));
            let best: Vec<&str> = names.zip(values).filter(|(_, v)| is_best(v)).map(|(name, _)| name).collect();
            cells.push(best.join(" "));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{PublishedSetting, printed_mean};
    use crate::testing::evaluation;
    use flock_model::checkpoint::Task;

    const TEXT: &str = "dataset,split,ultra_mrr,ultra_hits10,flock_mrr,flock_hits10\n\
                        Metafam,inductive_er,0.238,0.644,0.476,0.935\n\
                        FBNELL,inductive_er,0.485,0.652,0.502,0.7\n\
                        HM_1k,inductive_e,0.059,0.092,0.069,0.119\n";

    #[test]
    fn puts_ours_beside_theirs() {
        let published = PublishedNumbers::parse("p.csv", TEXT).unwrap();
        let results =
            [evaluation("HM_1k", 0.069, 0.2), evaluation("Metafam", 0.5, 0.9033), evaluation("FBNELL", 0.4, 0.7)];
        let sheet = compare(&results.iter().collect::<Vec<_>>(), &published, Style::Marked("", "*"));
        let text: Vec<String> = std::iter::once(&sheet.header).chain(&sheet.rows).map(|r| r.join("|")).collect();
        // Means by hand: (0.5 + 0.4)/2, (0.238 + 0.485)/2, (0.476 + 0.502)/2; with HM_1k (0.969)/3,
        // 0.782/3, 1.047/3.
        let want = [
            "dataset|ours MRR|ultra MRR|flock MRR|ours − flock|ours Hits@10|ultra Hits@10|flock Hits@10|ours − flock",
            "Metafam|0.500*|0.238|0.476|+0.024|0.903|0.644|0.935*|-0.032",
            "FBNELL|0.400|0.485|0.502*|-0.102|0.700*|0.652|0.700*|+0.000",
            "mean inductive_er (2)|0.450|0.361|0.489*|-0.039|0.802|0.648|0.818*|-0.016",
            "HM_1k|0.069*|0.059|0.069*|+0.000|0.200*|0.092|0.119|+0.081",
            "mean (3)|0.323|0.261|0.349*|-0.026|0.601*|0.463|0.585|+0.016",
        ];
        assert_eq!(text, want);
        let plain = compare(&[&results[1]], &published, Style::Plain).csv();
        assert_eq!(
            plain,
            "dataset,ours MRR,ultra MRR,flock MRR,ours − ultra MRR,ours − flock MRR,best MRR,ours Hits@10,ultra Hits@10,flock Hits@10,\
             ours − ultra Hits@10,ours − flock Hits@10,best Hits@10\n\
             Metafam,0.500,0.238,0.476,+0.262,+0.024,ours,0.903,0.644,0.935,+0.259,-0.032,flock\n"
        );
        let unknown = evaluation("mine", 0.3, 0.4);
        let marked = compare(&[&unknown], &published, Style::Marked("**", "**")).markdown();
        assert!(marked.ends_with("| mine | 0.300 | – | – | – | 0.400 | – | – | – |\n"), "{marked}");
    }

    #[test]
    fn means_by_group_are_those_of_the_paper() {
        let published = PublishedNumbers::built_in(Task::Entity, PublishedSetting::ZeroShot);
        let printed = |system: &str, group| printed_mean(Task::Entity, PublishedSetting::ZeroShot, system, group);
        let results = [evaluation("Metafam", 0.5, 0.9), evaluation("FBNELL", 0.4, 0.7)];
        let sheet = by_group(&results.iter().collect::<Vec<_>>(), &published, printed);
        let text: Vec<String> = std::iter::once(&sheet.header).chain(&sheet.rows).map(|r| r.join("|")).collect();
        assert_eq!(
            text[0],
            "model|graphs|inductive_er (2 of 23) MRR|inductive_er (2 of 23) Hits@10|all but pretraining (2 of 54) MRR|\
             all but pretraining (2 of 54) Hits@10"
        );
        // tab:main-entity-result, zero-shot.
        assert_eq!(text[1], "ultra|all, as printed|0.345|0.513|0.366|0.518");
        assert_eq!(text[2], "ultra|all|0.345|0.513|0.366|0.518");
        assert_eq!(text[7], "flock|all, as printed|0.369|0.554|0.391|0.560");
        // (0.476 + 0.502)/2 and (0.935 + 0.700)/2.
        assert!(text[9].starts_with("flock|these|0.489|0.8"), "{}", text[9]);
        assert_eq!(text[10], "ours|these|0.450|0.800|0.450|0.800");
    }

    /// The means that the paper prints are those of the values that it prints per graph, but for rounding and for ULTRA's
    /// fine-tuned relations, where the inductive e,r group and with it the total are lower.
    #[test]
    fn printed_means_are_means_of_printed_values() {
        for task in [Task::Entity, Task::Relation] {
            for setting in [PublishedSetting::ZeroShot, PublishedSetting::FineTuned] {
                let published = PublishedNumbers::built_in(task, setting);
                let all: Vec<Evaluation> = published.datasets().map(|name| evaluation(name, 0.5, 0.5)).collect();
                let printed = |system: &str, group| printed_mean(task, setting, system, group);
                let sheet = by_group(&all.iter().collect::<Vec<_>>(), &published, printed);
                for rows in sheet.rows[..9].chunks(3) {
                    for (column, title) in sheet.header.iter().enumerate().skip(2) {
                        let value = |row: usize| rows[row][column].parse::<f64>().unwrap_or(f64::NAN);
                        let known =
                            rows[0][0] == "ultra" && task == Task::Relation && setting == PublishedSetting::FineTuned;
                        let bound = if known { 0.0085 } else { 0.0016 };
                        assert!((value(0) - value(1)).abs() < bound, "{task} {setting:?} {title}: {rows:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn seeds_of_a_dataset_make_one_row() {
        let published = PublishedNumbers::parse("p.csv", TEXT).unwrap();
        let run = |dataset, seed, mrr| {
            let mut e = evaluation(dataset, mrr, 0.7);
            e.protocol.seed = seed;
            (e.protocol.sampled, e.protocol.of) = (1, 2);
            e
        };
        let runs = [run("Metafam", 0, 0.4), run("Metafam", 1, 0.6), run("FBNELL", 0, 0.5), run("FBNELL", 1, 0.5)];
        let all: Vec<&Evaluation> = runs.iter().collect();
        assert_eq!(caveat(&all[..2]).unwrap().matches(" graphs").count(), 0, "one graph, not two");
        let sheet = compare(&all, &published, Style::Marked("", "*"));
        let ours: Vec<&str> = sheet.rows.iter().map(|row| &row[1][..]).collect();
        // Metafam: ±√(2 · 0.1²) = 0.1414. The means of the seeds are 0.45 and 0.55: √(2 · 0.05²).
        assert_eq!(ours, ["0.500* ± 0.141", "0.500 ± 0.000", "0.500* ± 0.071", "0.500* ± 0.071"]);
        let plain = compare(&all, &published, Style::Plain);
        assert_eq!(plain.header[1..4], ["ours (sample) MRR", "ours (sample) ± MRR", "ultra MRR"]);
        assert_eq!(plain.rows[0][1..4], ["0.500", "0.141", "0.238"]);
        assert!(plain.rows.iter().all(|row| row.len() == plain.header.len()));
    }

    #[test]
    fn other_triples_than_published_ones_are_called_so() {
        let published = PublishedNumbers::parse("p.csv", TEXT).unwrap();
        let whole = evaluation("Metafam", 0.5, 0.9);
        assert_eq!(caveat(&[&whole]), None);
        let mut valid = evaluation("FBNELL", 0.4, 0.7);
        valid.split = Split::Valid;
        let mut sample = evaluation("HM_1k", 0.1, 0.2);
        (sample.protocol.sampled, sample.protocol.of) = (100, 200);
        let says = |results: &[&Evaluation]| {
            let header = compare(results, &published, Style::Plain).header;
            (caveat(results).unwrap(), header[1].clone(), header[4].clone())
        };
        let published_are = "published ones of all test triples";
        let (title, column, difference) = says(&[&valid]);
        assert_eq!(title, format!("not the same triples: ours are of validation triples, {published_are}"));
        assert_eq!((&column[..], &difference[..]), ("ours (validation) MRR", "ours (validation) − ultra MRR"));
        let (title, column, _) = says(&[&whole, &valid, &sample]);
        let expected = "validation triples on 1 of 3 graphs, a sample on 1 of 3 graphs";
        assert_eq!(title, format!("not the same triples: ours are of {expected}, {published_are}"));
        assert_eq!(column, "ours (validation, sample) MRR");
        assert_eq!(says(&[&sample]).1, "ours (sample) MRR");
    }
}
