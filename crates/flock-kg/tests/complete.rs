//! Missing links and scores of given triples, on the bundled graph with the bundled model.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

use flock_kg::complete::{
    CompleteOptions, Completion, CompletionProgress, CompletionState, RankBy, Scope, Sides, StateError,
};
use flock_kg::graph::{GraphBuilder, Triple};
use flock_kg::score::{Journal, JournalError, find_triple};
use flock_kg::{Graph, Inquiry, Predictor};

fn predictor() -> Predictor {
    Predictor::bundled().unwrap()
}

fn options(graph: &Graph, relation: &str, top: usize) -> CompleteOptions {
    let scope = Scope { relation: Some(relation), ..Scope::default() };
    CompleteOptions { top, ..CompleteOptions::default() }.within(graph, &scope).unwrap()
}

fn run(inquiry: &Inquiry<'_>, work: &mut Completion, step: usize) {
    while inquiry.advance(work, step, false).unwrap() > 0 {}
}

/// Few walks make it quick.
const WALKS: u32 = 4;

#[test]
fn links_are_new_and_asked_for_from_both_ends() {
    let (graph, predictor) = (flock_kg::bundled::graph().unwrap(), predictor());
    let inquiry = predictor.on(&graph).walks(WALKS);
    let mut work = Completion::new(graph.topology(), options(&graph, "official_language", 20));
    run(&inquiry, &mut work, 16);
    let list = inquiry.links(&work).unwrap();
    assert_eq!(list.links.len(), 20);
    assert_eq!((list.progress.left, list.progress.lacking), (0, 0));
    for (i, link) in list.links.iter().enumerate() {
        assert_eq!((link.rank, link.sides, link.relation), (i + 1, Sides::Both, "official_language"));
        let t = find_triple(&graph, link.triple()).unwrap();
        assert!(graph.topology().triple_id(t).is_none(), "{link:?} is known");
        // The mean of what the two questions say by themselves.
        let tails = inquiry.score(link.triple()).unwrap();
        let heads = inquiry.score_as(link.triple(), flock_kg::Blank::Head).unwrap();
        assert_eq!((link.tail_logit, link.head_logit), (Some(tails.logit), Some(heads.logit)));
        assert_eq!(link.logit, (tails.logit + heads.logit) / 2.0);
        assert!((0.0..=1.0).contains(&link.specificity) && (0.0..=1.0).contains(&link.probability));
    }
    assert!(list.links.windows(2).all(|w| w[0].specificity >= w[1].specificity));
}

#[test]
fn steps_threads_and_interruptions_change_nothing() {
    let graph = flock_kg::bundled::graph().unwrap();
    let links = |threads: usize, step: usize, rank_by: RankBy, stop_after: Option<usize>| {
        let predictor = Predictor::builder().threads(threads).build().unwrap();
        let inquiry = predictor.on(&graph).walks(WALKS);
        let options = CompleteOptions { rank_by, ..options(&graph, "borders", 30) };
        let mut work = Completion::new(graph.topology(), options.clone());
        if let Some(steps) = stop_after {
            (0..steps).for_each(|_| _ = inquiry.advance(&mut work, step, false).unwrap());
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("state");
            inquiry.state(&work).unwrap().write(&file).unwrap();
            work = Completion::new(graph.topology(), options);
            let state = CompletionState::read(&file).unwrap().unwrap();
            inquiry.resume(&mut work, state).unwrap().unwrap();
        }
        run(&inquiry, &mut work, step);
        let list = inquiry.links(&work).unwrap().links;
        list.iter().map(|l| (l.triple().map(str::to_string), l.logit.to_bits())).collect::<Vec<_>>()
    };
    let whole = links(2, 16, RankBy::Score, None);
    assert_eq!(whole, links(1, 1, RankBy::Score, None));
    assert_eq!(whole, links(2, 16, RankBy::Score, Some(5)));
    let specific = links(2, 16, RankBy::Specificity, None);
    assert_eq!(specific, links(1, 7, RankBy::Specificity, Some(20)));
    assert_ne!(whole, specific);
}

#[test]
fn work_of_another_kind_is_not_taken_up() {
    let (graph, predictor) = (flock_kg::bundled::graph().unwrap(), predictor());
    let inquiry = predictor.on(&graph).walks(WALKS);
    let mut work = Completion::new(graph.topology(), options(&graph, "capital", 5));
    inquiry.advance(&mut work, 4, false).unwrap();
    let state = inquiry.state(&work).unwrap();
    let refused = |inquiry: &Inquiry<'_>, options: CompleteOptions| {
        let mut other = Completion::new(graph.topology(), options);
        match inquiry.resume(&mut other, state.clone()).unwrap() {
            Err(StateError::Other { what }) => what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&inquiry, options(&graph, "borders", 5)), "scope or other options");
    let seeded = predictor.on(&graph).walks(WALKS).seed(1);
    assert_eq!(refused(&seeded, options(&graph, "capital", 5)), "number of walks, passes or seed");
    let smaller = Graph::open("data/medicines.tsv").unwrap_or_else(|_| {
        let mut builder = GraphBuilder::new();
        builder.add("a", "capital", "b");
        builder.finish().unwrap()
    });
    let elsewhere = predictor.on(&smaller).walks(WALKS);
    let mut other = Completion::new(smaller.topology(), CompleteOptions::default());
    assert!(matches!(elsewhere.resume(&mut other, state.clone()).unwrap(), Err(StateError::Other { what: "graph" })));
}

#[test]
fn in_a_hurry_only_what_the_best_lack_is_asked() {
    let (graph, predictor) = (flock_kg::bundled::graph().unwrap(), predictor());
    let inquiry = predictor.on(&graph).walks(WALKS);
    let mut work = Completion::new(graph.topology(), options(&graph, "borders", 10));
    inquiry.advance(&mut work, 8, false).unwrap();
    let left = work.progress().left;
    while inquiry.advance(&mut work, 8, true).unwrap() > 0 {}
    assert_eq!(work.progress().left, left);
    assert!(inquiry.links(&work).unwrap().links.iter().all(|l| l.sides == Sides::Both));
}

#[test]
fn the_search_ends_in_time_for_what_the_best_links_lack() {
    // Ten questions took 2 s, so five more take 1 s, and with five reasons 2 s.
    let progress = CompletionProgress { asked: 10, planned: 90, left: 80, lacking: 5 };
    let must_end = |more, budget| progress.must_end(Duration::from_secs(2), 10, more, Duration::from_millis(budget));
    assert!(must_end(0, 3000) && !must_end(0, 3100));
    assert!(must_end(5, 4000) && !must_end(5, 4100));
    // Before the first question only the budget itself counts.
    let at_first = |budget| progress.must_end(Duration::from_secs(2), 0, 100, Duration::from_millis(budget));
    assert!(at_first(2000) && !at_first(2100));
    // A plan may be given up before any of its places.
    let graph = flock_kg::bundled::graph().unwrap();
    let places = Cell::new(0);
    let go_on = || places.replace(places.get() + 1) < 3;
    assert!(Completion::plan_while(graph.topology(), CompleteOptions::default(), &go_on).is_none());
    assert_eq!(places.get(), 4);
}

#[test]
fn a_withheld_link_is_found() {
    // The language of France is taken out of the graph, and comes back as its best link.
    let whole = flock_kg::bundled::graph().unwrap();
    let withheld: HashSet<Triple> =
        HashSet::from([find_triple(&whole, ["France", "official_language", "French"]).unwrap()]);
    let mut builder = GraphBuilder::new();
    for t in whole.topology().triples().filter(|t| !withheld.contains(t)) {
        builder.add(whole.entities().get(t.head), whole.relations().get(t.relation), whole.entities().get(t.tail));
    }
    let (graph, predictor) = (builder.finish().unwrap(), predictor());
    let inquiry = predictor.on(&graph).reasons(true);
    let scope = Scope { head: Some("France"), relation: Some("official_language"), ..Scope::default() };
    let options = CompleteOptions { top: 5, ..CompleteOptions::default() }.within(&graph, &scope).unwrap();
    let mut work = Completion::new(graph.topology(), options);
    run(&inquiry, &mut work, 16);
    let list = inquiry.links(&work).unwrap();
    assert_eq!(list.links[0].triple(), ["France", "official_language", "French"]);
    assert!(list.links.iter().all(|l| l.head == "France"));
    assert!(list.links[0].reason.as_ref().is_some_and(|r| !r.steps.is_empty()));
}

#[test]
fn given_triples_stand_among_their_alternatives() {
    let (graph, predictor) = (flock_kg::bundled::graph().unwrap(), predictor());
    let inquiry = predictor.on(&graph).walks(WALKS).passes(2);
    let texts =
        [["Portugal", "borders", "Spain"], ["Portugal", "borders", "Lisbon"], ["Portugal", "borders", "Norway"]];
    let triples = texts.map(|t| find_triple(&graph, t).unwrap());
    let scored = inquiry.score_triples(&triples).unwrap();
    let named = inquiry.named_scores(&scored).unwrap();
    for (score, text) in named.scores.iter().zip(texts) {
        let (tail, head) = (inquiry.score(text).unwrap(), inquiry.score_as(text, flock_kg::Blank::Head).unwrap());
        assert_eq!([score.head, score.relation, score.tail], text);
        assert_eq!((score.as_tail.logit, score.as_head.logit, score.known), (tail.logit, head.logit, tail.known));
        // Ranks among alternatives leave the other known answers out, so they are no worse.
        assert!(score.as_tail.rank <= tail.rank && score.as_head.rank <= head.rank);
        assert!((0.0..=100.0).contains(&score.as_tail.percentile));
    }
    assert!(named.scores[0].known && !named.scores[1].known);
    assert!(named.scores[0].as_tail.percentile > named.scores[1].as_tail.percentile);
    // Alone or together: the same bits.
    for (triple, scored) in triples.iter().zip(&scored) {
        assert_eq!(inquiry.score_triples(&[*triple]).unwrap(), [*scored]);
    }
}

#[test]
fn a_journal_goes_on_after_a_cut() {
    let (graph, predictor) = (flock_kg::bundled::graph().unwrap(), predictor());
    let inquiry = predictor.on(&graph).walks(1);
    let triples: Vec<Triple> = graph.topology().triples().take(3).collect();
    let scored = inquiry.score_triples(&triples).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (mut journal, found) = Journal::open(&path, "run 1").unwrap();
    assert!(found.is_empty());
    journal.add(&scored).unwrap();
    drop(journal);
    // Killed in the middle of the last line.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 9]).unwrap();
    let (mut journal, found) = Journal::open(&path, "run 1").unwrap();
    assert_eq!(found, scored[..2]);
    journal.add(&scored[2..]).unwrap();
    drop(journal);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert!(matches!(Journal::open(&path, "run 2"), Err(JournalError::Other { .. })));
    Journal::open(&path, "run 1").unwrap().0.remove().unwrap();
    assert!(!path.exists());
    // Killed in the middle of the first line; a file of somebody else that has no whole line either is not touched.
    std::fs::write(&path, &text[..9]).unwrap();
    assert!(Journal::open(&path, "run 1").unwrap().1.is_empty());
    std::fs::write(&path, "my thesis").unwrap();
    assert!(matches!(Journal::open(&path, "run 1"), Err(JournalError::Other { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "my thesis");
}
