//! What walks and passes buy: the rule for the base walk count against a fixed one, and MRR against ensembled passes.

use flock_eval::analyse::{Trial, passes};
use flock_eval::chart::{self, Axis, Series};
use flock_eval::datasets::Dataset;
use flock_eval::evaluate::{Choice, EvalProgress, PreparedEvaluation, prepare};
use flock_eval::sheet::Sheet;
use flock_eval::{EvalError, EvalSettings, Evaluation, RankMetrics};
use flock_model::checkpoint::Task;
use serde_json::json;

use super::paper::{ADAPTIVE, GROUPS, INDUCTIVE};
use super::report::Section;
use super::scores::group_mean;
use super::work::Work;
use super::{Item, Report, ReproduceError, ReproduceEvent};

/// The count that the rule is held against: the one that the paper pretrains with.
const FIXED: u32 = 128;

/// tab:flock-adaptive.
pub(super) fn adaptive(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::AdaptiveWalks;
    let graphs = work.graphs(item)?;
    let named = work.model(Task::Entity)?;
    let settings = work.options.eval();
    let with =
        |walks: Choice, of: &str| work.evaluate_all(of, named, &graphs.datasets, &EvalSettings { walks, ..settings });
    let rule = with(Choice::Rule, "by the rule: ")?;
    let fixed = with(Choice::Given(FIXED), "n = 128: ")?;

    let mut report = Report::new(item);
    report.say(named.name.to_string());
    let options = super::ReproduceOptions { walks: Choice::Rule, ..work.options.clone() };
    report.say(format!("{}; against n = {FIXED}", options.describe()));
    report.say(graphs.describe());
    let header = [
        "group",
        "numbers",
        "graphs",
        "|V|",
        "|E|",
        "n",
        "MRR",
        "Hits@10",
        "MRR, n = 128",
        "Hits@10, n = 128",
        "MRR, rule − 128",
    ];
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for (group, paper) in GROUPS.into_iter().zip(&ADAPTIVE) {
        let mean = |of: &[Evaluation], value: &dyn Fn(&Evaluation) -> f64| group_mean(of, group, value);
        let Some(ours) = mean(&rule, &Evaluation::mrr) else { continue };
        let at_128 = mean(&fixed, &Evaluation::mrr).unwrap_or(f64::NAN);
        let count = rule.iter().filter(|e| e.group == group).count();
        let of = |of: &[Evaluation], value: &dyn Fn(&Evaluation) -> f64| mean(of, value).unwrap_or(f64::NAN);
        rows.push(vec![
            group.to_string(),
            "ours".to_string(),
            count.to_string(),
            format!("{:.0}", of(&rule, &|e| f64::from(e.protocol.entities))),
            format!("{:.0}", of(&rule, &|e| e.protocol.triples as f64)),
            format!("{:.2}", of(&rule, &|e| f64::from(e.protocol.n))),
            format!("{ours:.3}"),
            format!("{:.3}", of(&rule, &Evaluation::hits10)),
            format!("{at_128:.3}"),
            format!("{:.3}", of(&fixed, &Evaluation::hits10)),
            format!("{:+.3}", ours - at_128),
        ]);
        rows.push(vec![
            group.to_string(),
            "published".to_string(),
            paper.graphs.to_string(),
            format!("{:.0}", paper.entities),
            format!("{:.0}", paper.triples),
            format!("{:.2}", paper.n),
            format!("{:.3}", paper.rule[0]),
            format!("{:.3}", paper.rule[1]),
            format!("{:.3}", paper.fixed[0]),
            format!("{:.3}", paper.fixed[1]),
            format!("{:+.3}", paper.rule[0] - paper.fixed[0]),
        ]);
        bars.push((format!("{group} ({count})"), vec![ours, at_128]));
    }
    let sheet = Sheet { header: header.map(String::from).to_vec(), rows };
    report.sections.push(
        Section::new("", "By group", sheet).note(
            "The paper prints the mean n of the two inductive groups in each other's row; they are put right here.",
        ),
    );
    let row = |(a, b): (&Evaluation, &Evaluation)| {
        vec![
            a.dataset.clone(),
            a.protocol.entities.to_string(),
            a.protocol.triples.to_string(),
            a.protocol.n.to_string(),
            format!("{:.3}", a.mrr()),
            format!("{:.3}", a.hits10()),
            format!("{:.3}", b.mrr()),
            format!("{:.3}", b.hits10()),
            format!("{:+.3}", a.mrr() - b.mrr()),
        ]
    };
    let header =
        ["dataset", "|V|", "|E|", "n", "MRR", "Hits@10", "MRR, n = 128", "Hits@10, n = 128", "MRR, rule − 128"];
    let rows = rule.iter().zip(&fixed).map(row).collect();
    report.sections.push(Section::new("graphs", "By graph", Sheet { header: header.map(String::from).to_vec(), rows }));
    let series = ["by the rule".to_string(), format!("n = {FIXED}")];
    let picture = chart::bars(item.title(), &options.describe(), "MRR, mean over graphs", &series, &bars);
    report.draw("", item.title(), picture);
    report.keep(rule.into_iter().chain(fixed).collect());
    Ok(report)
}

/// The numbers of passes on the axis of fig:ensemble_scaling.
const PASSES: [u32; 6] = [1, 2, 4, 8, 12, 16];

/// fig:ensemble_scaling: means over graphs, with the deviation over seeds.
pub(super) fn ensemble(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::Ensemble;
    let graphs = work.graphs(item)?;
    let named = work.model(Task::Entity)?;
    let seeds: Vec<u64> =
        (0..work.options.seeds.max(1)).map(|s| work.options.seed.wrapping_add(u64::from(s))).collect();
    let mut all: Vec<(&Dataset, Vec<Vec<Trial>>)> = Vec::new(); // by graph, seed and number of passes
    for (i, dataset) in graphs.datasets.iter().enumerate() {
        let mut of_seeds = Vec::new();
        for seed in &seeds {
            work.begin(&format!("{}, seed {seed}", dataset.name), i, graphs.datasets.len());
            of_seeds.push(trials(work, dataset, *seed)?);
        }
        all.push((dataset, of_seeds));
    }

    let mut report = Report::new(item);
    report.say(named.name.to_string());
    let options = super::ReproduceOptions { passes: Choice::Given(PASSES[PASSES.len() - 1]), ..work.options.clone() };
    let of_seeds = format!("mean and standard deviation over {} seeds of the walks, from {}", seeds.len(), seeds[0]);
    report.say(format!("{}; the first p passes are an ensemble of p; {of_seeds}", options.describe()));
    report.say(graphs.describe());
    let mut series = Vec::new();
    let mut rows = Vec::new();
    for (name, groups) in INDUCTIVE {
        let of: Vec<&Vec<Vec<Trial>>> =
            all.iter().filter(|(d, _)| groups.contains(&d.group())).map(|(_, t)| t).collect();
        if of.is_empty() {
            continue;
        }
        let (mut points, mut errors) = (Vec::new(), Vec::new());
        for (p, passes) in PASSES.into_iter().enumerate() {
            let over_graphs =
                |seed: usize| RankMetrics::mean(&of.iter().map(|trials| trials[seed][p].metrics).collect::<Vec<_>>());
            let by_seed: Vec<RankMetrics> = (0..seeds.len()).map(over_graphs).collect();
            let (mean, deviation) = (RankMetrics::mean(&by_seed), RankMetrics::deviation(&by_seed));
            let mut row = vec![name.to_string(), of.len().to_string(), passes.to_string()];
            row.extend([mean.mrr, deviation.mrr, mean.hits10, deviation.hits10].map(|x| format!("{x:.4}")));
            rows.push(row);
            points.push((f64::from(passes), mean.mrr));
            errors.push(deviation.mrr);
        }
        let bold = name.starts_with("all");
        series.push(Series { name: format!("{name} ({})", of.len()), points, errors, bold, ..Series::default() });
    }
    let header = ["graphs", "number", "P", "MRR", "± MRR", "Hits@10", "± Hits@10"].map(String::from).to_vec();
    report.sections.push(
        Section::new("", "Means over graphs", Sheet { header, rows }).note(
            "The paper shows this as a figure without numbers: it rises from 1 to 8 passes and is flat beyond 12.",
        ),
    );
    let header = ["dataset", "seed", "P", "MRR", "Hits@1", "Hits@10", "coverage"].map(String::from).to_vec();
    let mut rows = Vec::new();
    for (dataset, of_seeds) in &all {
        for (seed, trials) in seeds.iter().zip(of_seeds) {
            for t in trials {
                let mut row = vec![dataset.name.clone(), seed.to_string(), t.setting.clone()];
                row.extend([t.metrics.mrr, t.metrics.hits1, t.metrics.hits10, t.coverage].map(|x| format!("{x:.4}")));
                rows.push(row);
            }
        }
    }
    report.sections.push(Section::new("graphs", "By graph and seed", Sheet { header, rows }));
    let ticks = PASSES.iter().map(|p| f64::from(*p)).collect();
    let axis = Axis::log("ensembled passes P", ticks);
    report.draw("", item.title(), chart::lines(item.title(), &of_seeds, &axis, &Axis::linear("MRR"), &series));
    Ok(report)
}

/// The metrics of one graph and seed after each number of passes.
fn trials(work: &Work<'_>, dataset: &Dataset, seed: u64) -> Result<Vec<Trial>, ReproduceError> {
    let named = work.model(Task::Entity)?;
    let passes_of = Choice::Given(PASSES[PASSES.len() - 1]);
    let settings = EvalSettings { seed, passes: passes_of, ..work.options.eval() };
    // The same triples for every seed of the walks, so that only those differ.
    let PreparedEvaluation { set, ask, protocol, .. } =
        prepare(dataset, &named.model, &named.name, &settings, work.options.seed)?;
    let key = json!({ "protocol": protocol, "passes": PASSES });
    work.once(&format!("passes-{}-seed{seed}", dataset.name), &key, || {
        let mut watch = |done: usize, total: usize| {
            work.tell(ReproduceEvent::Asked(EvalProgress { done, total, now: done }));
            work.check_stop().is_ok()
        };
        match passes(&named.model, &set, ask, &PASSES, work.predictor.pool(), &mut watch) {
            Err(EvalError::Stopped) => Err(ReproduceError::Stopped),
            trials => Ok(trials?),
        }
    })
}
