//! The paper's smaller studies: Petals, the relation embeddings of Metafam, the gain against density.

use flock_eval::Evaluation;
use flock_eval::analyse::{density as densities, embedding};
use flock_eval::published::{PublishedNumbers, PublishedSetting};
use flock_eval::sheet::Sheet;
use flock_model::checkpoint::Task;
use flock_train::petals::{instances, svg};
use flock_train::{Event, PetalsConfig, PetalsReport};

use super::paper::PETALS;
use super::report::Section;
use super::work::Work;
use super::{Item, Report, ReproduceError, ReproduceEvent};
use crate::finetune::{RunOptions, run_petals};

/// tab:synthetic-exp-results, and an instance as in fig:synthetic-example.
pub(super) fn petals(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::Petals;
    if work.options.steps.is_some() || work.options.minutes.is_some() {
        let key = if work.options.steps.is_some() { "steps" } else { "minutes" };
        return Err(ReproduceError::Setting { item, key });
    }
    let mut settings = work.options.training.clone();
    if settings.get("seed").is_none() {
        settings.put("the seed", "seed", work.options.seed);
    }
    let mut config = PetalsConfig::resolve(&settings)?;
    let dir = work.run_dir("petals", &config);
    config.threads = work.options.threads;
    work.begin("training on Petals", 0, 1);
    let watch = Box::new(|event: Event<'_>| work.tell(ReproduceEvent::Training(event)));
    let done = run_petals(&config, &dir, RunOptions { resume: false, stop: work.stop(), watch })?;
    let PetalsReport { solved, instances: of, accuracy_true, accuracy_false, .. } =
        done.ok_or(ReproduceError::Stopped)?;
    let accuracy = 100.0 * (accuracy_true + accuracy_false) / 2.0;

    let mut report = Report::new(item);
    report.say(format!(
        "trained from new weights for {} epochs, seed {}, n = {}, L = {}; tested with P = {}, each target on walks of its own",
        config.epochs, config.seed, config.walks, config.length, config.passes
    ));
    let published = PetalsConfig { seed: config.seed, threads: config.threads, ..PetalsConfig::default() };
    if config != published {
        report.say("**not as published**: the settings of the run differ from the published ones");
    }
    report.say("an instance is solved if the logit of the true target is above that of the false one by more than 0.1");
    let mut rows: Vec<Vec<String>> = PETALS
        .iter()
        .map(|(name, percent)| vec![name.to_string(), "published".into(), format!("{percent:.1}"), "–".into()])
        .collect();
    rows.push(vec!["Flock".into(), "ours".into(), format!("{accuracy:.1}"), format!("{solved} of {of}")]);
    let header = ["model", "numbers", "accuracy %", "solved"].map(String::from).to_vec();
    report.sections.push(Section::new("", "Accuracy", Sheet { header, rows }).note(
        "Accuracy: the mean of the shares of true targets with a positive and of false targets with a negative logit.",
    ));
    let picture = svg(&instances(config.seed)[27]);
    report.draw("", "An instance of Petals", picture);
    Ok(report)
}

/// fig:case_study.
pub(super) fn case_study(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::CaseStudy;
    let graphs = work.graphs(item)?;
    let (dataset, named) = (&graphs.datasets[0], work.model(Task::Entity)?);
    let set = dataset.test_set(work.options.split)?;
    let ask = work.options.eval().ask(dataset, &named.model, &set);
    const QUESTIONS: usize = 8;
    work.begin("relation embeddings", 0, 1);
    let embedded = embedding::relations(&named.model, set.on.topology(), ask, QUESTIONS, work.predictor.pool())
        .map_err(flock_eval::EvalError::from)?;
    let found = embedding::picture(&named.name.to_string(), &set, ask, QUESTIONS, &embedded);

    let mut report = Report::new(item);
    report.say(named.name.to_string());
    report.say(format!(
        "n = {}, {QUESTIONS} questions × {} passes for each relation, seed {}",
        ask.walks, ask.passes, ask.seed
    ));
    report.sections.push(Section::new("", "The two main directions", found.sheet));
    // The paper's point: relations that are inverses of each other must not fall together.
    let names = set.on.graph().relations();
    let of = |name: &str| embedded.iter().find(|(r, _)| names.get(*r) == name).map(|(_, v)| v);
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
    let mut all = Vec::new();
    for (i, (_, a)) in embedded.iter().enumerate() {
        all.extend(embedded[..i].iter().map(|(_, b)| distance(a, b)));
    }
    all.sort_by(f64::total_cmp);
    let median = all.get(all.len() / 2).copied().unwrap_or(f64::NAN);
    let pairs = [("fatherOf", "sonOf"), ("motherOf", "daughterOf"), ("fatherOf", "motherOf"), ("sonOf", "daughterOf")];
    let rows: Vec<Vec<String>> = pairs
        .iter()
        .filter_map(|(a, b)| {
            let d = distance(of(a)?, of(b)?);
            let nearer = all.iter().filter(|x| **x < d).count();
            let share = 100.0 * nearer as f64 / all.len() as f64;
            Some(vec![format!("{a}, {b}"), format!("{d:.3}"), format!("{:.2}", d / median), format!("{share:.0}")])
        })
        .collect();
    if !rows.is_empty() {
        let header = ["pair", "distance", "over the median", "% of pairs nearer"].map(String::from).to_vec();
        let section = Section::new("pairs", "Distances between embeddings, all dimensions", Sheet { header, rows });
        report.sections.push(section.note(
            "The paper shows pictures only: ULTRA puts fatherOf and sonOf in almost the same place, Flock does not.",
        ));
    }
    report.draw("", item.title(), found.picture);
    Ok(report)
}

/// fig:density, from the paper's own numbers and from ours.
pub(super) fn density(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let item = Item::Density;
    let published = PublishedNumbers::built_in(Task::Entity, PublishedSetting::ZeroShot);
    let theirs = published.mrr("ultra");
    let mut report = Report::new(item);
    let mut sections = Vec::new();
    // Without graphs the paper's own numbers are what there is.
    if work.options.data.is_some() {
        let graphs = work.graphs(item)?;
        let named = work.model(Task::Entity)?;
        let results = work.evaluate_all("", named, &graphs.datasets, &work.options.eval())?;
        let ours: Vec<(&str, f64)> = results.iter().map(|e: &Evaluation| (e.dataset.as_str(), e.mrr())).collect();
        let found = densities::picture("ours", &ours, "ultra", &theirs, "zero-shot");
        report.say(named.name.to_string());
        report.say(work.options.describe());
        report.say(graphs.describe());
        let note = found.note.clone().unwrap_or_default();
        sections.push(Section::new("", "Ours", found.sheet).note(note));
        report.draw("", "Ours", found.picture);
        report.keep(results);
    }
    let found = densities::picture("flock", &published.mrr("flock"), "ultra", &theirs, "zero-shot");
    let suffix = if sections.is_empty() { "" } else { "published" };
    sections.push(
        Section::new(suffix, "Published Flock", found.sheet)
            .note(found.note.unwrap_or_default())
            .note("The paper: Pearson r = -0.53, p = 5.0e-5, from numbers that it prints rounded."),
    );
    report.draw(suffix, "Published Flock", found.picture);
    report.sections = sections;
    Ok(report)
}
