//! Lesson 4: make the model better on one graph, and see what it gained.
//!
//! A run has a directory and survives being killed: started there again, it goes on. (This lesson begins anew each time.)
//!
//! ```text
//! cargo run --release --example finetune
//! ```

use flock_kg::finetune::{RunOptions, Training};
use flock_kg::train::{Event, TrainConfig};
use flock_kg::{Graph, Predictor, Task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/data/countries.tsv");
    let mut config = TrainConfig::finetuning(Task::Entity);
    config.steps = std::env::args().nth(1).map_or(Ok(30), |steps| steps.parse())?;
    config.data.holdout = 0.1; // a tenth of the triples is kept for validation
    config.validation.every = config.steps;

    let dir = std::env::temp_dir().join("flock-kg-finetune-example");
    let _ = std::fs::remove_dir_all(&dir);
    let watch = Box::new(|event: Event<'_>| {
        if let Event::Step(progress) = event {
            eprint!("\rstep {}/{}  loss {:.3}  ", progress.step, progress.steps, progress.loss);
        }
    });
    let graph = Graph::open(file)?;
    let start = Predictor::bundled()?.checkpoint(config.task)?;
    let training = Training::new(&config).graph("countries", graph.clone()).start(&start);
    let summary = training.run(&dir, RunOptions { watch, ..RunOptions::default() })?;
    eprintln!();
    if let (Some(before), Some(best)) = (summary.before, summary.best) {
        println!("MRR of held-out triples: {before:.3} before, {:.3} at step {}", best.mrr, best.step);
    }

    // The result is a checkpoint like any other.
    let predictor = Predictor::builder().model(&summary.model).build()?;
    for answer in predictor.on(&graph).passes(4).ask(["Spain", "official_language", "?"])?.top(3) {
        println!("{:<12} {:.2}", answer.name, answer.probability);
    }
    Ok(())
}
