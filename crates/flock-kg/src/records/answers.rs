//! Answers as records: one row for each answer, with the question it answers.

use super::cell::{Cell, Column, Tone};
use super::{RecordError, RowSink};
use crate::answers::Answers;
use flock_graph::Graph;
use flock_model::checkpoint::Task;

/// The columns of answers: the question (`?` where it asks), the answer and its numbers, and with `reasons` the path behind it.
pub fn answer_columns(reasons: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::text("head"),
        Column::text("relation"),
        Column::text("tail"),
        Column::integer("rank"),
        Column::text("answer"),
        Column::text("label"),
        Column::number("probability").tone(Tone::Score),
        Column::text("probability_from"),
        Column::number("logit").digits(3).signed(),
        Column::number("spread").digits(3),
        Column::integer("visits"),
        Column::truth("known").words("known", "new").tone(Tone::NewsIfFalse),
    ];
    columns.extend(reasons.then(|| Column::text("reason")));
    columns
}

/// Writes a row for each answer, under the [`answer_columns`]. Names are full names; a reason is written with the names that people
/// read.
///
/// # Errors
/// A sink that cannot be written to.
pub fn write_answers(
    out: &mut dyn RowSink,
    graph: &Graph,
    answers: &Answers<'_>,
    reasons: bool,
) -> Result<(), RecordError> {
    let is_relation = answers.model.task == Task::Relation;
    for a in answers {
        let label = if is_relation { graph.labels().relation(a.id) } else { graph.labels().entity(a.id) };
        let mut row: Vec<Cell<'_>> = answers.query.iter().map(|name| Cell::from(*name)).collect();
        row.extend([
            a.rank.into(),
            a.name.into(),
            label.into(),
            a.probability.into(),
            answers.probability_from.as_str().into(),
            a.logit.into(),
            a.spread.into(),
            a.visits.into(),
            a.known.into(),
        ]);
        if reasons {
            let reason = a.reason.as_ref().map(|reason| reason.brief(|name| answers.show(name).to_string()));
            row.push(reason.into());
        }
        out.row(&row)?;
    }
    Ok(())
}
