//! Asking the questions of a [`Completion`].

use std::collections::BTreeMap;

use flock_model::checkpoint::Task;
use flock_model::ensemble::combine;
use flock_walk::WalkQuery;

use super::{Completion, CompletionState, Link, Links, StateError};
use crate::calibrate::UnreachedScore;
use crate::candidates::Candidates;
use crate::error::AskError;
use crate::explain::ReasonReport;
use crate::inquiry::Inquiry;

impl<'a> Inquiry<'a> {
    /// Asks at most `count` questions of the work, all threads on them. Returns how many were asked: 0 if the work is done. With
    /// `hurry` no further links are looked for, and only what the best ones lack is asked.
    ///
    #[cfg_attr(feature = "bundled", doc = "```")]
    #[cfg_attr(not(feature = "bundled"), doc = "```ignore")]
    /// use flock_kg::complete::{CompleteOptions, Completion, Scope};
    ///
    /// let graph = flock_kg::bundled::graph()?;
    /// let predictor = flock_kg::Predictor::bundled()?;
    /// let scope = Scope { relation: Some("borders"), head: Some("Spain"), tail: None };
    /// let options = CompleteOptions { top: 3, ..CompleteOptions::default() }.within(&graph, &scope)?;
    /// let mut work = Completion::new(graph.topology(), options);
    /// let inquiry = predictor.on(&graph);
    /// while inquiry.advance(&mut work, 16, false)? > 0 {}
    /// for link in inquiry.links(&work)?.links {
    ///     println!("{} {} {}  {:.2}", link.head, link.relation, link.tail, link.probability);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no entity model, or someone has cancelled. The work is then as it was before.
    pub fn advance(&self, work: &mut Completion, count: usize, hurry: bool) -> Result<usize, AskError> {
        let asker = self.asker(Task::Entity)?;
        let ask = self.ask_settings(self.predictor.model(Task::Entity)?, 1);
        let before = work.place();
        let pairs = work.questions(count.max(1), hurry);
        let queries: Vec<_> = pairs.iter().map(|pair| pair.query()).collect();
        let go_on = || !self.is_cancelled();
        let asked = asker.ask_passes_while(&queries, ask, &go_on).inspect_err(|_| work.go_back(before))?;
        for (pair, passes) in pairs.iter().zip(asked) {
            work.add(self.graph.topology(), *pair, combine(&passes))?;
        }
        Ok(pairs.len())
    }

    /// How many questions keep all threads busy and are soon done.
    pub fn step_size(&self) -> Result<usize, AskError> {
        let ask = self.ask_settings(self.predictor.model(Task::Entity)?, 1);
        const WALKS: u32 = 1024;
        Ok((WALKS / ask.walks.max(1) / ask.passes.max(1)).clamp(4, 256) as usize)
    }

    /// Walk positions of all passes of so many questions for entities. The time they take grows with them.
    ///
    /// # Errors
    /// There is no entity model.
    pub fn step_positions(&self, questions: usize) -> Result<u64, AskError> {
        let named = self.predictor.model(Task::Entity)?;
        let ask = self.ask_settings(named, 1);
        let walks = WalkQuery::Entity { head: 0, relation: 0 }.num_walks(ask.walks);
        let pass = (walks * ask.options.length * named.model.meta().updates) as u64;
        Ok(questions as u64 * u64::from(ask.passes) * pass)
    }

    /// The work so far, to be written down.
    ///
    /// # Errors
    /// There is no entity model.
    pub fn state(&self, work: &Completion) -> Result<CompletionState, AskError> {
        let named = self.predictor.model(Task::Entity)?;
        Ok(work.state(self.graph.topology(), &named.name, &self.ask_settings(named, 1)))
    }

    /// Takes up work where a state has left it.
    ///
    /// # Errors
    /// A state of another graph, model or scope, or made with other walks; or there is no entity model.
    pub fn resume(&self, work: &mut Completion, state: CompletionState) -> Result<Result<(), StateError>, AskError> {
        let named = self.predictor.model(Task::Entity)?;
        Ok(work.resume(state, self.graph.topology(), &named.name, &self.ask_settings(named, 1)))
    }

    /// The best links of the work so far, each with a reason if this inquiry asks for reasons: that takes a question for each head
    /// and relation.
    ///
    /// # Errors
    /// There is no entity model, or someone has cancelled.
    pub fn links(&self, work: &Completion) -> Result<Links<'a>, AskError> {
        let named = self.predictor.model(Task::Entity)?;
        let ask = self.ask_settings(named, 1);
        let probabilities = self.probabilities(named, &ask);
        // A link enters the list because a walk reached one of its ends, so it is none of the unreached.
        let unreached = UnreachedScore { logit: f64::NEG_INFINITY, count: 0 };
        let probability = |logit| probabilities.at(logit, unreached);
        let best = work.best();
        let mut links: Vec<Link<'a>> =
            (1..).zip(&best).map(|(rank, c)| Link::new(self.graph, rank, c, probability)).collect();
        if self.reasons {
            self.give_reasons(&mut links)?;
        }
        let names = links.iter().flat_map(|l| l.triple());
        let in_reasons = links.iter().filter_map(|l| l.reason.as_ref()).flat_map(ReasonReport::names);
        let shown = self.shown(names.chain(in_reasons));
        Ok(Links {
            links,
            progress: work.progress(),
            seed: ask.seed,
            walks: ask.walks,
            passes: ask.passes,
            model: named.name.clone(),
            probability_from: probabilities.source(),
            calibration_unused: probabilities.unused().map(|unfit| unfit.to_string()),
            shown,
        })
    }

    /// Asks each head and relation of the list once more, among its tails in the list.
    fn give_reasons(&self, links: &mut [Link<'a>]) -> Result<(), AskError> {
        let mut questions: BTreeMap<[&'a str; 2], Vec<usize>> = BTreeMap::new();
        for (i, link) in links.iter().enumerate() {
            questions.entry([link.head, link.relation]).or_default().push(i);
        }
        for ([head, relation], places) in questions {
            let tails = Candidates::new(places.iter().map(|&i| links[i].tail));
            let again = self.copy().among_candidates(tails).reasons(true).top(0);
            let answers = match again.ask([head, relation, "?"]) {
                Err(AskError::Cancelled) => return Err(AskError::Cancelled),
                // An entity that is called ? cannot be asked about by name; its links have no reason.
                Err(_) => continue,
                Ok(answers) => answers,
            };
            for answer in answers {
                for &i in &places {
                    if links[i].tail == answer.name {
                        links[i].reason = answer.reason.clone();
                    }
                }
            }
        }
        Ok(())
    }
}
