//! Missing links as records: one row for each, under the same columns in every format.

use serde::Deserialize;

use super::{Link, Links, Sides};
use crate::calibrate::{ProbabilitySource, sigmoid};
use crate::records::{Cell, Column, RecordError, RowSink, Tone};

/// The columns of links, and with `reasons` the path behind each. `people` read names as they are shown, without the columns that
/// only programs want.
pub fn link_columns(reasons: bool, people: bool, calibrated: bool) -> Vec<Column> {
    let mut columns =
        vec![Column::integer("rank"), Column::text("head"), Column::text("relation"), Column::text("tail")];
    if !people {
        columns.extend(["head_label", "relation_label", "tail_label"].map(Column::text));
    }
    columns.push(Column::number("score").tone(Tone::Score));
    columns.extend((calibrated || !people).then(|| Column::number("probability")));
    columns.push(Column::number("specificity"));
    columns.push(Column::integer("tail_rank"));
    columns.push(Column::integer("head_rank"));
    if !people {
        columns.extend(["logit", "tail_logit", "head_logit"].map(|name| Column::number(name).digits(3).signed()));
        columns.extend(["sides", "probability_from"].map(Column::text));
    }
    columns.extend(reasons.then(|| Column::text("reason")));
    columns
}

/// Writes a row for each link, under the [`link_columns`].
///
/// # Errors
/// A sink that cannot be written to.
pub fn write_links(out: &mut dyn RowSink, list: &Links<'_>, reasons: bool, people: bool) -> Result<(), RecordError> {
    for link in &list.links {
        write_link(
            out,
            link,
            list.probability_from,
            &|name| list.shown.get(name).map_or(name, String::as_str).to_string(),
            reasons,
            people,
        )?;
    }
    Ok(())
}

/// Writes the row of one link. `show` is how people read a name.
///
/// # Errors
/// A sink that cannot be written to.
pub fn write_link(
    out: &mut dyn RowSink,
    link: &Link<'_>,
    from: ProbabilitySource,
    show: &dyn Fn(&str) -> String,
    reasons: bool,
    people: bool,
) -> Result<(), RecordError> {
    let mut row: Vec<Cell<'_>> = vec![link.rank.into()];
    if people {
        row.extend(link.triple().map(|name| Cell::from(show(name))));
    } else {
        row.extend(link.triple().map(Cell::from));
        row.extend([link.head_label, link.relation_label, link.tail_label].map(Cell::from));
    }
    row.push(sigmoid(link.logit).into());
    row.extend((!people || from == ProbabilitySource::Graph).then(|| link.probability.into()));
    row.extend([link.specificity.into(), link.tail_rank.into(), link.head_rank.into()]);
    if !people {
        row.extend([link.logit.into(), link.tail_logit.into(), link.head_logit.into()]);
        row.extend([link.sides.as_str(), from.as_str()].map(Cell::from));
    }
    if reasons {
        row.push(link.reason.as_ref().map(|reason| reason.brief(show)).into());
    }
    out.row(&row)
}

/// A row that was read back from a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LinkRecord {
    /// Its place in the list.
    pub rank: u64,
    /// The head's full name.
    pub head: String,
    /// The relation's full name.
    pub relation: String,
    /// The tail's full name.
    pub tail: String,
    /// The head's label.
    #[serde(default)]
    pub head_label: Option<String>,
    /// The relation's label.
    #[serde(default)]
    pub relation_label: Option<String>,
    /// The tail's label.
    #[serde(default)]
    pub tail_label: Option<String>,
    /// σ of the mean logit.
    pub score: f64,
    /// The probability, or the score if it is not calibrated.
    pub probability: f64,
    /// The share of the odds.
    pub specificity: f64,
    /// The rank of the tail.
    #[serde(default)]
    pub tail_rank: Option<u32>,
    /// The rank of the head.
    #[serde(default)]
    pub head_rank: Option<u32>,
    /// The mean logit.
    pub logit: f64,
    /// The logit of the tail.
    #[serde(default)]
    pub tail_logit: Option<f64>,
    /// The logit of the head.
    #[serde(default)]
    pub head_logit: Option<f64>,
    /// From which ends it was asked for.
    pub sides: Sides,
    /// What the probability is: `score`, `default` or `graph`.
    pub probability_from: String,
    /// The reason in one line.
    #[serde(default)]
    pub reason: Option<String>,
}

impl LinkRecord {
    /// Writes the row, under the [`link_columns`] for programs.
    ///
    /// # Errors
    /// A sink that cannot be written to.
    pub fn write(
        &self,
        out: &mut dyn RowSink,
        reasons: bool,
        people: bool,
        calibrated: bool,
    ) -> Result<(), RecordError> {
        let names = [&self.head, &self.relation, &self.tail];
        let labels = [&self.head_label, &self.relation_label, &self.tail_label];
        let mut row: Vec<Cell<'_>> = vec![(self.rank as usize).into()];
        if people {
            row.extend(
                names.into_iter().zip(labels).map(|(name, label)| label.as_ref().unwrap_or(name).as_str().into()),
            );
        } else {
            row.extend(names.map(|name| Cell::from(name.as_str())));
            row.extend(labels.map(|label| Cell::from(label.as_deref())));
        }
        row.push(self.score.into());
        row.extend((!people || calibrated).then(|| self.probability.into()));
        row.extend([self.specificity.into(), self.tail_rank.into(), self.head_rank.into()]);
        if !people {
            row.extend([self.logit.into(), self.tail_logit.into(), self.head_logit.into()]);
            row.extend([self.sides.as_str(), &self.probability_from].map(Cell::from));
        }
        if reasons {
            row.push(self.reason.as_deref().into());
        }
        out.row(&row)
    }
}
