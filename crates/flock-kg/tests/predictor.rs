//! One way to ask: single, many, streamed, scored and explained questions agree with each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flock_kg::calibrate::{CalibrationError, ProbabilitySource};
use flock_kg::{
    AskError, AskRemedy, Blank, CalibrateOptions, Calibrations, EXPLAIN_PASSES, ExplainOptions, Graph, Predictor,
    PredictorError, StopReason, Task, bundled,
};

fn graph() -> Graph {
    bundled::graph().unwrap()
}

fn predictor(threads: usize) -> Predictor {
    Predictor::builder().threads(threads).build().unwrap()
}

const QUESTIONS: [[&str; 3]; 5] = [
    ["Spain", "official_language", "?"],
    ["?", "capital", "Vienna"],
    ["France", "?", "Spain"],
    ["Portugal", "borders", "?"],
    ["Germany", "?", "Berlin"],
];

#[test]
fn many_questions_get_the_answers_of_each() {
    let (graph, predictor) = (graph(), predictor(2));
    let inquiry = predictor.on(&graph).passes(2).seed(5).walks(16);
    let alone: Vec<_> = QUESTIONS.iter().map(|q| inquiry.ask(*q).unwrap()).collect();
    let many: Vec<_> = inquiry.ask_many(&QUESTIONS).into_iter().map(Result::unwrap).collect();
    let all: Vec<_> = inquiry.ask_all(QUESTIONS).map(Result::unwrap).collect();
    assert_eq!((&many, &all), (&alone, &alone));
    // One thread or two, the same bits.
    let single = self::predictor(1);
    assert_eq!(single.on(&graph).passes(2).seed(5).walks(16).ask(QUESTIONS[0]).unwrap(), alone[0]);
    // A question that fails fails alone.
    let mixed = inquiry.ask_many(&[QUESTIONS[0], ["Atlantis", "borders", "?"], QUESTIONS[2]]);
    assert!(matches!(mixed[1], Err(AskError::Unknown(_))));
    assert_eq!((mixed[0].as_ref().unwrap(), mixed[2].as_ref().unwrap()), (&alone[0], &alone[2]));
}

#[test]
fn a_stream_ends_with_the_answers_of_all_passes() {
    let (graph, predictor) = (graph(), predictor(2));
    let inquiry = || predictor.on(&graph).walks(16).top(5);
    let steps: Vec<_> = inquiry().passes(3).reasons(true).stream(QUESTIONS[0]).unwrap().map(Result::unwrap).collect();
    assert_eq!(steps.iter().map(|a| a.passes).collect::<Vec<_>>(), [1, 2, 3]);
    // Reasons come at the end; until then each step is what so many passes give.
    assert_eq!(steps[1], inquiry().passes(2).ask(QUESTIONS[0]).unwrap());
    assert_eq!(steps[2], inquiry().passes(3).reasons(true).ask(QUESTIONS[0]).unwrap());
    assert!(steps[2].answers.iter().any(|a| a.reason.is_some()) && steps[1].answers.iter().all(|a| a.reason.is_none()));
}

#[test]
fn a_budget_says_why_it_ended() {
    let (graph, predictor) = (graph(), predictor(2));
    let inquiry = |time| predictor.on(&graph).walks(16).top(3).budget(time);
    let none = inquiry(Duration::ZERO).ask(QUESTIONS[0]).unwrap();
    assert_eq!((none.passes, none.stopped), (1, Some(StopReason::Time)));
    let one = inquiry(Duration::ZERO).passes(1).ask(QUESTIONS[0]).unwrap();
    assert_eq!((one.passes, one.stopped), (1, Some(StopReason::Passes)));
    let ages = inquiry(Duration::from_secs(3600)).ask(QUESTIONS[0]).unwrap();
    assert!(ages.passes >= 5 && ages.stopped == Some(StopReason::Steady), "{} {:?}", ages.passes, ages.stopped);
    // The passes of a budget are those of a question that asks for as many.
    let counted = predictor.on(&graph).walks(16).top(3).passes(ages.passes).ask(QUESTIONS[0]).unwrap();
    assert_eq!((&counted.answers, counted.stopped), (&ages.answers, None));
}

#[test]
fn candidates_and_new_answers() {
    let (graph, predictor) = (graph(), predictor(1));
    let all = predictor.on(&graph).walks(16).ask(QUESTIONS[3]).unwrap();
    assert!(all.answers.iter().any(|a| a.known));
    let new = predictor.on(&graph).walks(16).only_new(true).ask(QUESTIONS[3]).unwrap();
    assert!(new.answers.iter().all(|a| !a.known) && new.candidates < all.candidates);
    let among = predictor.on(&graph).walks(16).among(["Spain", "France", "Spain"]).ask(QUESTIONS[3]).unwrap();
    let mut names: Vec<&str> = among.answers.iter().map(|a| a.name).collect();
    names.sort_unstable();
    assert_eq!((names, among.candidates), (vec!["France", "Spain"], 2));
    let unknown = predictor.on(&graph).among(["Spian"]).ask(QUESTIONS[3]).unwrap_err();
    assert_eq!(unknown.to_string(), r#"unknown entity "Spian"; near names: "Spain""#);
}

#[test]
fn a_score_is_the_answer_to_the_question_without_the_triple() {
    let (graph, predictor) = (graph(), predictor(2));
    let inquiry = predictor.on(&graph).walks(16).passes(2);
    // Not in the graph: nothing to hide, so the score is that of the list.
    let listed = inquiry.ask(["Spain", "borders", "?"]).unwrap();
    let new = listed.answers.iter().find(|a| !a.known).unwrap();
    assert_eq!(inquiry.score(["Spain", "borders", new.name]).unwrap(), *new);
    // In the graph: hidden, as in an explanation.
    let known = inquiry.score(["Portugal", "borders", "Spain"]).unwrap();
    let options = ExplainOptions { check: false, ..ExplainOptions::default() };
    let explained = inquiry.explain(["Portugal", "borders", "Spain"], Blank::Tail, &options).unwrap();
    assert!(known.known && explained.known);
    assert_eq!((known.logit, known.probability), (explained.logit, explained.probability));
    let relation = inquiry.score_as(["Portugal", "borders", "Spain"], Blank::Relation).unwrap();
    assert_eq!((relation.name, relation.visits), ("borders", None));
}

#[test]
fn cancelling_stops_questions_and_explanations() {
    let (graph, predictor) = (graph(), predictor(2));
    let cancel = AtomicBool::new(false);
    let inquiry = || predictor.on(&graph).walks(16).passes(64).cancel(&cancel);
    let mut stream = inquiry().stream(QUESTIONS[0]).unwrap();
    assert!(stream.next().unwrap().is_ok());
    cancel.store(true, Ordering::Relaxed);
    assert!(matches!(stream.next(), Some(Err(AskError::Cancelled))));
    assert!(stream.next().is_none());
    assert!(matches!(inquiry().ask(QUESTIONS[0]), Err(AskError::Cancelled)));
    assert!(matches!(inquiry().ask_many(&QUESTIONS)[4], Err(AskError::Cancelled)));
    let options = ExplainOptions::default();
    let explained = inquiry().explain(["Portugal", "borders", "Spain"], Blank::Tail, &options);
    assert!(matches!(explained, Err(AskError::Cancelled)));
}

#[test]
fn errors_carry_a_remedy_in_no_shell_s_words() {
    let (graph, predictor) = (graph(), predictor(1));
    let inquiry = predictor.on(&graph);
    let remedy = |q: [&str; 3]| inquiry.ask(q).unwrap_err().remedy();
    assert_eq!(remedy(["Spain", "borders", "France"]), Some(AskRemedy::AddBlank));
    assert_eq!(remedy(["?", "borders", "?"]), Some(AskRemedy::NameTheOthers));
    assert_eq!(remedy(["Spian", "borders", "?"]), None);

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("entity.safetensors");
    std::fs::write(&file, bundled::bundled(Task::Entity)).unwrap();
    let one = Predictor::builder().threads(1).model(&file).build().unwrap();
    assert_eq!((one.tasks(), one.has_given_models()), (vec![Task::Entity], true));
    let refused = one.on(&graph).ask(["Spain", "?", "France"]).unwrap_err();
    assert_eq!(refused.remedy(), Some(AskRemedy::OtherModel(Task::Relation)));
    assert!(refused.to_string().ends_with("this is an entity model: it cannot answer (head, ?, tail)"), "{refused}");
    let twice = Predictor::builder().model(&file).model(&file).build();
    assert!(matches!(twice.err(), Some(PredictorError::SameTask { task: Task::Entity, .. })));
    // The same weights from a file answer alike, under another name.
    let (a, b) = (one.on(&graph).ask(QUESTIONS[0]).unwrap(), inquiry.ask(QUESTIONS[0]).unwrap());
    assert_eq!(a.answers, b.answers);
    assert_eq!((a.model.sha256 == b.model.sha256, b.model.origin.as_str()), (true, "bundled"));
}

#[test]
fn near_names_are_looked_up_for_so_many_only() {
    let (graph, predictor) = (graph(), predictor(1));
    let unknown = ["Spian", "borders", "?"];
    let replies = predictor.on(&graph).near_names(1).ask_many(&[unknown, unknown]);
    assert!(matches!(&replies[0], Err(AskError::Unknown(name)) if name.near == ["Spain"]));
    let second = replies[1].as_ref().unwrap_err().to_string();
    assert_eq!(second, r#"unknown entity "Spian"; near names are looked up for 1 only"#);
}

/// A budget is for questions: what has no budget of its own does not run the many passes that a budget allows.
#[test]
fn a_budget_leaves_scores_and_explanations_alone() {
    let (graph, predictor) = (graph(), predictor(2));
    let inquiry = || predictor.on(&graph).walks(16).budget(Duration::ZERO);
    let triple = ["Portugal", "borders", "Spain"];
    assert_eq!(inquiry().score(triple).unwrap(), predictor.on(&graph).walks(16).score(triple).unwrap());
    let options = ExplainOptions { check: false, ..ExplainOptions::default() };
    assert_eq!(inquiry().explain(triple, Blank::Tail, &options).unwrap().passes, EXPLAIN_PASSES);
    // Questions with a budget have all threads each, so they are answered one by one.
    assert_eq!((inquiry().group_size(), predictor.on(&graph).group_size()), (1, 4));
    // A limit holds for whatever the default would be.
    assert_eq!(predictor.on(&graph).walks(16).pass_limit(2).stream(QUESTIONS[0]).unwrap().count(), 2);
}

#[test]
fn what_is_no_list_and_no_triple_is_refused() {
    let (graph, predictor) = (graph(), predictor(1));
    let inquiry = predictor.on(&graph).among(Vec::<String>::new());
    assert!(matches!(inquiry.ask(QUESTIONS[0]), Err(AskError::NoCandidates)));
    for triple in [["?", "borders", "Spain"], ["Portugal", "borders", "?"]] {
        let refused = predictor.on(&graph).score(triple).unwrap_err();
        assert_eq!(
            (refused.to_string().as_str(), refused.remedy()),
            ("found ? in a triple, expected three names", Some(AskRemedy::NameAllThree))
        );
    }
    // A score says how far it spreads, whether a walk reached the answer or not.
    let far = predictor.on(&graph).walks(1).passes(2).score(["Ireland", "borders", "Cambodia"]).unwrap();
    assert!(far.spread.is_some(), "{far:?}");
}

/// Interim answers of a stream are calibrated if the last ones are.
#[test]
fn a_stream_is_calibrated_throughout_or_not_at_all() {
    let (graph, predictor) = (graph(), predictor(2));
    let options = CalibrateOptions { queries: 20, top: 10 };
    let inquiry = || predictor.on(&graph).walks(8);
    let made = inquiry().passes(1).calibrate(Task::Entity, &options, &mut |_, _| true).unwrap().unwrap();
    let mut calibrations = Calibrations::default();
    calibrations.set(Task::Entity, made.calibration);
    let stream = |passes| {
        let steps = inquiry().calibrations(&calibrations).passes(passes).stream(QUESTIONS[0]).unwrap();
        steps.map(|step| step.unwrap().calibration.is_some()).collect::<Vec<_>>()
    };
    assert_eq!((stream(1), stream(2)), (vec![true], vec![false, false]));
    // Cancelling stops a calibration between two passes.
    let cancel = AtomicBool::new(true);
    let cancelled = inquiry().cancel(&cancel).calibrate(Task::Entity, &options, &mut |_, _| true);
    assert!(matches!(cancelled, Err(CalibrationError::Ask(e)) if matches!(*e, AskError::Cancelled)));
}

/// Where the graph has no calibration that fits, the bundled models bring one, and every reply says which it is.
#[test]
fn probabilities_say_where_they_come_from() {
    let (graph, predictor) = (graph(), predictor(2));
    let options = CalibrateOptions { queries: 20, top: 10 };
    let rule = predictor.model(Task::Entity).unwrap().base_walks(&graph);
    let inquiry = || predictor.on(&graph).walks(rule);
    let default = inquiry().ask(QUESTIONS[0]).unwrap();
    assert_eq!(default.probability_from, ProbabilitySource::Default);
    let about = default.default_calibration.as_ref().unwrap();
    assert!(about.graphs >= 10 && about.error_after < about.error_before, "{about:?}");
    // A relation question has the map of its own model.
    let relation = predictor.on(&graph).ask(QUESTIONS[2]).unwrap();
    assert_eq!(relation.probability_from, ProbabilitySource::Default);
    assert_ne!(relation.default_calibration, default.default_calibration);
    // Four times the walks of the rule is another way to ask: the number is σ(logit) again, and is called a score.
    let score = predictor.on(&graph).walks(4 * rule).ask(QUESTIONS[0]).unwrap();
    assert_eq!((score.probability_from, score.probability_from.title()), (ProbabilitySource::Score, "score"));
    assert!(score.answers.iter().all(|a| (a.probability - 1.0 / (1.0 + (-a.logit).exp())).abs() < 1e-12));

    let made = inquiry().calibrate(Task::Entity, &options, &mut |_, _| true).unwrap().unwrap();
    assert!(made.calibration.missed.is_some());
    let mut calibrations = Calibrations::default();
    calibrations.set(Task::Entity, made.calibration);
    let own = inquiry().calibrations(&calibrations).ask(QUESTIONS[0]).unwrap();
    assert_eq!((own.probability_from, &own.default_calibration), (ProbabilitySource::Graph, &None));
    // Asked in another way it is not used; the default takes its place.
    let other = inquiry().calibrations(&calibrations).passes(4).ask(QUESTIONS[0]).unwrap();
    assert_eq!((other.probability_from, &other.calibration), (ProbabilitySource::Default, &None));
    assert_eq!(other.calibration_unused.as_deref(), Some("the calibration was made with 1 passes, not used with 4"));
    // Order, ranks and logits are those of the scores, and no probability rises down the list.
    for reply in [&own, &default] {
        let places =
            |answers: &flock_kg::Answers<'_>| answers.answers.iter().map(|a| (a.rank, a.id)).collect::<Vec<_>>();
        assert_eq!(places(reply), places(&default));
        assert!(reply.answers.windows(2).all(|w| w[0].logit >= w[1].logit && w[0].probability >= w[1].probability));
    }
}

/// What no walk reached has next to no probability, listed by name or not.
#[test]
fn a_calibration_does_not_lift_what_no_walk_reached() {
    // Few walks, and four thousand entities more: walks cannot reach them all.
    let islands: String = (0..2000).map(|i| format!("rock {i}\tborders\tskerry {i}\n")).collect();
    let text = flock_kg::bundled::COUNTRIES.to_string() + &islands;
    let (graph, _) = flock_kg::graph::load_reader("rocks.tsv", text.as_bytes(), &Default::default()).unwrap();
    let predictor = predictor(2);
    let rule = predictor.model(Task::Entity).unwrap().base_walks(&graph);
    let walks = rule.div_ceil(2);
    let inquiry = || predictor.on(&graph).walks(walks);
    let question = ["Ireland", "borders", "?"];
    let all = inquiry().ask(question).unwrap();
    assert!(all.probability_from == ProbabilitySource::Default && all.unreached.count > 0, "{:?}", all.unreached);
    // All of them together have no more than what a question misses: one answer at most.
    let together = all.unreached.probability * f64::from(all.unreached.count);
    assert!(together <= 1.0, "{together}");
    assert!(
        all.answers
            .iter()
            .filter(|a| a.logit <= all.unreached.logit)
            .all(|a| a.probability <= all.unreached.probability)
    );
    let reached: Vec<&str> = all.answers.iter().map(|a| a.name).collect();
    let missed = graph.entities().iter().find(|name| !reached.contains(name)).unwrap();
    let named = inquiry().among([missed, reached[0]]).ask(question).unwrap();
    let found = named.answers.iter().find(|a| a.name == missed).unwrap();
    assert_eq!(found.probability, all.unreached.probability);
    // The same where it is scored and explained alone.
    let scored = inquiry().score(["Ireland", "borders", missed]).unwrap();
    assert_eq!(scored.probability, all.unreached.probability);
    let options = ExplainOptions { check: false, ..ExplainOptions::default() };
    let explained = inquiry().passes(1).explain(["Ireland", "borders", missed], Blank::Tail, &options).unwrap();
    assert_eq!((explained.probability, explained.reasons.len()), (all.unreached.probability, 0));
}

/// IRIs are shown by their prefix, the same everywhere: every reply says how.
#[test]
fn iris_are_shown_by_their_prefix() {
    let turtle = "@prefix bio: <http://example.org/bio/> .\n\
                  bio:TP53 bio:regulates bio:MDM2 .\nbio:MDM2 bio:binds bio:TP53 .\nbio:TP53 bio:binds bio:EP300 .\n";
    let options = flock_kg::graph::LoadOptions::default();
    let (graph, _) = flock_kg::graph::load_reader("bio.ttl", turtle.as_bytes(), &options).unwrap();
    let predictor = predictor(1);
    let inquiry = predictor.on(&graph).walks(16).reasons(true);
    let answers = inquiry.ask(["bio:TP53", "bio:binds", "?"]).unwrap();
    assert_eq!(answers.query[0], "http://example.org/bio/TP53");
    assert_eq!(answers.show(answers.query[0]), "bio:TP53");
    assert!(answers.answers.iter().all(|a| answers.show(a.name).starts_with("bio:")));
    let full = inquiry.ask(["http://example.org/bio/TP53", "<http://example.org/bio/binds>", "?"]).unwrap();
    assert_eq!(full, answers);
    let json = serde_json::to_value(&answers).unwrap();
    assert_eq!(json["shown"]["http://example.org/bio/TP53"], "bio:TP53");
    let explained = inquiry.explain(["bio:MDM2", "bio:binds", "bio:TP53"], Blank::Tail, &ExplainOptions::default());
    let explained = explained.unwrap();
    assert_eq!(explained.show(explained.answer), "bio:TP53");
    // A graph without prefixes says nothing of it.
    let plain = predictor.on(&self::graph()).ask(QUESTIONS[0]).map(|a| serde_json::to_value(&a).unwrap()).unwrap();
    assert!(plain.get("shown").is_none());
}
