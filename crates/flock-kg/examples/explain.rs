//! Lesson 2: ask why. Which walks carried an answer, and what becomes of it without them?
//!
//! ```text
//! cargo run --release --example explain
//! ```

use flock_kg::{Blank, ExplainOptions, Graph, Predictor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::open(concat!(env!("CARGO_MANIFEST_DIR"), "/data/countries.tsv"))?;
    let predictor = Predictor::bundled()?;
    let inquiry = predictor.on(&graph).passes(4);

    // The graph has this triple, so it is hidden first: it would be its own best reason.
    let why = inquiry.explain(["Portugal", "continent", "Europe"], Blank::Tail, &ExplainOptions::default())?;
    println!("{} → {}: probability {:.3}", why.query.join("  "), why.answer, why.probability);
    for reason in &why.reasons {
        println!("  {:.3}  {}", reason.share, reason.line(str::to_string));
    }
    // Shares alone prove nothing. Hiding the edges of the best reasons should hurt more than hiding others.
    if let Some(check) = why.deletion {
        let random = check.random_mean.unwrap_or(0.0);
        println!(
            "the logit falls by {:.2} without {} edges of the best reasons, and by {random:.2} without random ones",
            check.fall,
            check.edges.len()
        );
    }

    // One line of reason for each answer of a list.
    let answers = predictor.on(&graph).passes(4).reasons(true).top(3).ask(["Spain", "official_language", "?"])?;
    for answer in &answers {
        let reason = answer.reason.as_ref().map_or_else(String::new, |reason| reason.brief(str::to_string));
        println!("{:<12} {:.3}  {reason}", answer.name, answer.probability);
    }
    Ok(())
}
