//! The paper's tables of time and memory, measured on this machine beside the published ones of a GPU.

use std::time::Duration;

use flock_eval::chart::{self, Axis, Series};
use flock_eval::sheet::Sheet;
use flock_model::bench::{self, BenchOptions, BenchReport};
use flock_model::checkpoint::{Metadata, Task};

use super::paper::{INFERENCE_SPEED, InferenceRow, TRAINING_SPEED};
use super::report::Section;
use super::work::Work;
use super::{Item, Report, ReproduceError};
use crate::predictor::all_threads;

/// (n, P) of tab:test-scalability, and (128, 16), which did not fit the paper's GPU.
const CASES: &[(u32, u32)] =
    &[(16, 1), (16, 2), (16, 4), (16, 8), (16, 16), (128, 1), (128, 2), (128, 4), (128, 8), (128, 16)];

fn measure(work: &Work<'_>, train: bool) -> Result<BenchReport, ReproduceError> {
    let options = BenchOptions {
        threads: work.options.threads.unwrap_or_else(all_threads),
        time: Duration::from_secs_f64(work.options.seconds),
        train,
        forward: CASES,
        model: Metadata::published(Task::Entity),
    };
    let report = bench::run(options, &mut |what| {
        work.begin(what, 0, 1);
        work.check_stop().is_ok()
    });
    work.check_stop()?;
    report.map_err(ReproduceError::Measure)
}

/// Megabytes of 2²⁰ bytes as gigabytes of 10⁹.
fn gigabytes(mebibytes: f64) -> String {
    format!("{:.3}", mebibytes * 1_048_576e-9)
}

fn about(report: &mut Report, measured: &BenchReport, threads: usize) {
    report.say(format!(
        "ours: {threads} threads, {}{}, f32 peak {:.0} GFLOP/s, on a synthetic graph of FB15k237's size ({} entities, {} \
         relations, {} triples)",
        measured.simd,
        if measured.native_bf16 { " with BF16" } else { "" },
        measured.peak_f32_gflops,
        measured.graph.entities,
        measured.graph.relations,
        measured.graph.triples
    ));
    report.say("published: one NVIDIA RTX A6000 (48 GB)");
    report.say("memory: peak of the process here, of the GPU there");
}

/// tab:train-scalability.
pub(super) fn training(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let measured = measure(work, true)?;
    let mut report = Report::new(Item::TrainingSpeed);
    let threads = measured.train.first().map_or(1, |row| row.threads);
    about(&mut report, &measured, threads);
    report.say("batch 8, 512 negatives, n = 16, P = 1");
    let parameters = Metadata::published(Task::Entity).num_parameters();
    let mut rows: Vec<Vec<String>> = TRAINING_SPEED
        .iter()
        .map(|(name, parameters, seconds, memory)| {
            let mut row = vec![name.to_string(), "published".to_string(), parameters.to_string()];
            row.extend([format!("{seconds:.3}"), format!("{memory:.3}"), "–".to_string()]);
            row
        })
        .collect();
    for row in &measured.train {
        let name = format!("Flock, {}", row.precision);
        let seconds = format!("{:.3}", row.ms_per_step / 1e3);
        let memory = gigabytes(row.peak_rss_mb);
        let ratio = format!("{:.2}", row.ratio);
        rows.push(vec![name, "ours".to_string(), parameters.to_string(), seconds, memory, ratio]);
    }
    let header = ["model", "numbers", "parameters", "seconds / batch", "memory GB", "useful work / f32 peak"];
    let sheet = Sheet { header: header.map(String::from).to_vec(), rows };
    let bars = |sheet: &Sheet| -> Vec<(String, Vec<f64>)> {
        let bar = |row: &Vec<String>| (format!("{} ({})", row[0], row[1]), vec![row[3].parse().unwrap_or(f64::NAN)]);
        sheet.rows.iter().map(bar).collect()
    };
    let title = Item::TrainingSpeed.title();
    let picture =
        chart::bars(title, &report.protocol[0], "seconds for a batch of 8", &["seconds".to_string()], &bars(&sheet));
    report.draw("", title, picture);
    report.sections.push(Section::new("", "Training", sheet));
    Ok(report)
}

/// tab:test-scalability.
pub(super) fn inference(work: &Work<'_>) -> Result<Report, ReproduceError> {
    let measured = measure(work, false)?;
    let mut report = Report::new(Item::InferenceSpeed);
    let threads = measured.forward.first().map_or(1, |row| row.threads);
    about(&mut report, &measured, threads);
    report.say("batch 8");
    let count = |n: u32| n.to_string();
    let mut rows: Vec<Vec<String>> = INFERENCE_SPEED
        .iter()
        .map(|published| {
            let (n, p) = published.case.map_or(("–".to_string(), "1".to_string()), |(n, p)| (count(n), count(p)));
            let mut row = vec![published.model.to_string(), "published".to_string(), n, p];
            let [seconds, memory] = [published.seconds, published.memory].map(|x| format!("{x:.3}"));
            row.extend([seconds, memory, "–".to_string()]);
            row
        })
        .collect();
    for row in &measured.forward {
        rows.push(vec![
            format!("Flock, {}", row.precision),
            "ours".to_string(),
            count(row.n),
            count(row.passes),
            format!("{:.3}", row.ms_per_query * row.batch as f64 / 1e3),
            gigabytes(row.peak_rss_mb),
            format!("{:.2}", row.ratio),
        ]);
    }
    let header = ["model", "numbers", "n", "P", "seconds / batch", "memory GB", "useful work / f32 peak"];
    report.sections.push(Section::new("", "Inference", Sheet { header: header.map(String::from).to_vec(), rows }));

    let published = |n: u32| -> Vec<(f64, f64)> {
        let at = |row: &InferenceRow| row.case.filter(|c| c.0 == n).map(|c| (f64::from(c.1), row.seconds));
        INFERENCE_SPEED.iter().filter_map(at).collect()
    };
    let mut series = Vec::new();
    for n in [16, 128] {
        series.push(Series { name: format!("published, n = {n}"), points: published(n), ..Series::default() });
        for precision in ["f32", "bf16"] {
            let of = measured.forward.iter().filter(|row| row.n == n && row.precision == precision);
            let points: Vec<(f64, f64)> =
                of.map(|row| (f64::from(row.passes), row.ms_per_query * row.batch as f64 / 1e3)).collect();
            series.push(Series {
                name: format!("ours, n = {n}, {precision}"),
                points,
                bold: true,
                ..Series::default()
            });
        }
    }
    let title = Item::InferenceSpeed.title();
    let x = Axis::log("ensembled passes P", vec![1.0, 2.0, 4.0, 8.0, 16.0]);
    let y = Axis::log("seconds for a batch of 8", vec![0.1, 1.0, 10.0, 100.0]);
    report.draw("", title, chart::lines(title, &report.protocol[0], &x, &y, &series));
    Ok(report)
}
