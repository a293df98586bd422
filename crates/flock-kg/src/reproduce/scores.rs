//! The tables of scores: MRR and Hits of each graph and by group, beside those of ULTRA, TRIX and Flock.

use flock_eval::Evaluation;
use flock_eval::chart;
use flock_eval::compare::{Style, by_group, compare};
use flock_eval::datasets::DatasetGroup;
use flock_eval::published::{PublishedNumbers, PublishedSetting, printed_mean};

use super::report::Section;
use super::work::Work;
use super::{Item, Report, ReproduceError};

/// One pretrained model on graphs that it has not seen.
pub(super) fn zero_shot(item: Item, work: &Work<'_>) -> Result<Report, ReproduceError> {
    let graphs = work.graphs(item)?;
    let named = work.model(item.task())?;
    let results = work.evaluate_all("", named, &graphs.datasets, &work.options.eval())?;
    let mut report = Report::new(item);
    report.say(named.name.to_string());
    report.say(work.options.describe());
    report.say(graphs.describe());
    add_scores(&mut report, results, PublishedSetting::ZeroShot);
    Ok(report)
}

/// Adds the tables of scores, by group and by graph, and the picture of the groups.
pub(super) fn add_scores(report: &mut Report, results: Vec<Evaluation>, setting: PublishedSetting) {
    let published = PublishedNumbers::built_in(report.item.task(), setting);
    let all: Vec<&Evaluation> = results.iter().collect();
    let task = report.item.task();
    let printed = |system: &str, group| printed_mean(task, setting, system, group);
    let groups = by_group(&all, &published, printed);
    report.draw("", format!("{}: MRR by group", report.item.title()), bars(report, &groups.header, &groups.rows));
    let per_graph = compare(&all, &published, Style::Marked("**", "**"));
    let mut section = Section::new("", "By graph", per_graph);
    section.plain = Some(compare(&all, &published, Style::Plain));
    if report.item == Item::EntityZeroShot && all.iter().any(|e| e.dataset == "WDsinger") {
        section = section.note(
            "TRIX's MRR on WDsinger is printed as 0.511. Its published weights give 0.399 there, with Hits@10 0.511.",
        );
    }
    report.sections.push(section);
    report.sections.push(
        Section::new("groups", "By group", groups).note(
            "`all`: means over all graphs of the group, as the paper prints them; `these`: over the graphs above.",
        ),
    );
    report.keep(results);
}

/// Draws the MRR columns of the table by group: systems and ours on these graphs.
fn bars(report: &Report, header: &[String], rows: &[Vec<String>]) -> String {
    let columns: Vec<usize> = (0..header.len()).filter(|i| header[*i].ends_with(" MRR")).collect();
    let these: Vec<&Vec<String>> = rows.iter().filter(|row| row[1] == "these").collect();
    // The subtitle says which triples ours are of.
    let short = |name: &String| if name.starts_with("ours") { "ours".to_string() } else { name.clone() };
    let series: Vec<String> = these.iter().map(|row| short(&row[0])).collect();
    let bars: Vec<(String, Vec<f64>)> = columns
        .iter()
        .map(|i| {
            let name = header[*i].trim_end_matches(" MRR").to_string();
            (name, these.iter().map(|row| row[*i].parse().unwrap_or(f64::NAN)).collect())
        })
        .collect();
    let subtitle = report.protocol.get(1).map_or("", String::as_str);
    chart::bars(report.item.title(), subtitle, "MRR, mean over graphs", &series, &bars)
}

/// Returns the mean of a value over the results of a group.
pub(super) fn group_mean(
    results: &[Evaluation],
    group: DatasetGroup,
    value: impl Fn(&Evaluation) -> f64,
) -> Option<f64> {
    let values: Vec<f64> = results.iter().filter(|e| e.group == group).map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
