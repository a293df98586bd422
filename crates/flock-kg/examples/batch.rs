//! Lesson 3: many questions, one answer after the other, and a question that is watched pass by pass.
//!
//! ```text
//! cargo run --release --example batch
//! ```

use std::time::Duration;

use flock_kg::{BLANK, Graph, Predictor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::open(concat!(env!("CARGO_MANIFEST_DIR"), "/data/countries.tsv"))?;
    let predictor = Predictor::bundled()?;

    // Questions may come from anywhere; answers come in their order while all threads are kept busy.
    let countries = ["Spain", "Switzerland", "Slovenia", "Slovakia", "Portugal", "Austria"];
    let inquiry = predictor.on(&graph).top(1).only_new(true);
    for answers in inquiry.ask_all(countries.map(|country| [country, "borders", BLANK])) {
        // A question that fails, say for an unknown name, fails alone.
        match answers {
            Ok(answers) => {
                let best = answers.top(1).first().map_or("nothing", |answer| answer.name);
                println!("{:<14} may border {best}", answers.query[0]);
            }
            Err(e) => eprintln!("{e}"),
        }
    }

    // Passes are added until the time is up or the list no longer changes.
    let patient = predictor.on(&graph).top(3).budget(Duration::from_millis(500));
    for answers in patient.stream(["Canada", "official_language", "?"])? {
        let answers = answers?;
        let names: Vec<&str> = answers.answers.iter().map(|answer| answer.name).collect();
        let ended = answers.stopped.map_or_else(String::new, |why| format!("  ({why:?})"));
        println!("pass {:>2}: {}{ended}", answers.passes, names.join(", "));
    }
    Ok(())
}
