//! Scored triples as records: one row for each, under the same columns in every format.

use super::TripleScores;
use crate::calibrate::sigmoid;
use crate::records::{Cell, Column, RecordError, RowSink, Tone};

/// The columns of scored triples. `people` read names as they are shown, without the columns that only programs want.
pub fn score_columns(people: bool, calibrated: bool) -> Vec<Column> {
    let mut columns = ["head", "relation", "tail"].map(Column::text).to_vec();
    if !people {
        columns.extend(["head_label", "relation_label", "tail_label"].map(Column::text));
    }
    columns.push(Column::number("score").tone(Tone::Score));
    columns.extend((calibrated || !people).then(|| Column::number("probability")));
    for side in ["tail", "head"] {
        columns.push(Column::integer(format!("{side}_rank")));
        if !people {
            columns.push(Column::integer(format!("{side}_candidates")));
        }
        columns.push(Column::number(format!("{side}_percentile")).digits(1));
    }
    columns.push(Column::truth("known").words("known", "new").tone(Tone::NewsIfFalse));
    if !people {
        columns.extend(["logit", "tail_logit", "head_logit"].map(|name| Column::number(name).digits(3).signed()));
        columns.push(Column::text("probability_from"));
    }
    columns
}

/// Writes a row for each triple, under the [`score_columns`].
///
/// # Errors
/// A sink that cannot be written to.
pub fn write_scores(out: &mut dyn RowSink, list: &TripleScores<'_>, people: bool) -> Result<(), RecordError> {
    for s in &list.scores {
        let (names, labels) = ([s.head, s.relation, s.tail], [s.head_label, s.relation_label, s.tail_label]);
        let mut row: Vec<Cell<'_>> = Vec::new();
        if people {
            let show = |name: &'_ str| list.shown.get(name).map_or(name, String::as_str).to_string();
            row.extend(names.map(|name| Cell::from(show(name))));
        } else {
            row.extend(names.map(Cell::from));
            row.extend(labels.map(Cell::from));
        }
        row.push(sigmoid(s.logit).into());
        row.extend((!people || list.is_calibrated()).then(|| s.probability.into()));
        for side in [&s.as_tail, &s.as_head] {
            row.push(side.rank.into());
            if !people {
                row.push(side.candidates.into());
            }
            row.push(side.percentile.into());
        }
        row.push(s.known.into());
        if !people {
            row.extend([s.logit.into(), s.as_tail.logit.into(), s.as_head.logit.into()]);
            row.push(list.probability_from.as_str().into());
        }
        out.row(&row)?;
    }
    Ok(())
}

/// Writes a row for each scored triple under the [`answer_columns`](crate::records::answer_columns): its tail as the answer, with the mean logit of both ends and
/// the rank as a tail.
///
/// # Errors
/// A sink that cannot be written to.
pub fn write_score_row(out: &mut dyn RowSink, list: &TripleScores<'_>, reasons: bool) -> Result<(), RecordError> {
    for s in &list.scores {
        let mut row: Vec<Cell<'_>> = [s.head, s.relation, s.tail].map(Cell::from).to_vec();
        row.extend([
            s.as_tail.rank.into(),
            s.tail.into(),
            s.tail_label.into(),
            s.probability.into(),
            list.probability_from.as_str().into(),
            s.logit.into(),
            Cell::None,
            Cell::None,
            s.known.into(),
        ]);
        row.extend(reasons.then_some(Cell::None));
        out.row(&row)?;
    }
    Ok(())
}
