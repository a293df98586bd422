//! What a reproduction comes to: tables, pictures, and the protocol behind them, written as Markdown,
//! CSV and SVG.

use std::path::{Path, PathBuf};

use flock_eval::compare::caveat;
use flock_eval::results::{self, write_text};
use flock_eval::sheet::Sheet;
use flock_eval::{EvalError, Evaluation};

use super::Item;

/// A table of a report.
#[derive(Clone, Debug)]
pub struct Section {
    /// What follows the item's name in the name of the CSV file; empty for the main table.
    pub suffix: &'static str,
    /// The heading.
    pub title: String,
    /// The table for people.
    pub sheet: Sheet,
    /// The table for programs, where it is another one.
    pub plain: Option<Sheet>,
    /// What must be known to read it.
    pub notes: Vec<String>,
}

impl Section {
    pub(super) fn new(suffix: &'static str, title: impl Into<String>, sheet: Sheet) -> Section {
        Section { suffix, title: title.into(), sheet, plain: None, notes: Vec::new() }
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Section {
        self.notes.push(note.into());
        self
    }
}

/// A picture of a report.
#[derive(Clone, Debug)]
pub struct Picture {
    /// As in [`Section`].
    pub suffix: &'static str,
    /// What it shows.
    pub title: String,
    /// The picture itself.
    pub svg: String,
}

/// A table or figure of the paper, made anew.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which one.
    pub item: Item,
    /// How it was made, a line each.
    pub protocol: Vec<String>,
    /// Its tables, the main one first.
    pub sections: Vec<Section>,
    /// Its pictures.
    pub pictures: Vec<Picture>,
    /// The evaluations behind it, with their whole protocol.
    pub evaluations: Vec<Evaluation>,
}

impl Report {
    pub(super) fn new(item: Item) -> Report {
        Report { item, protocol: Vec::new(), sections: Vec::new(), pictures: Vec::new(), evaluations: Vec::new() }
    }

    pub(super) fn say(&mut self, line: impl Into<String>) {
        self.protocol.push(line.into());
    }

    /// Keeps the evaluations behind the report, and says where their triples or files are not the published ones.
    pub(super) fn keep(&mut self, evaluations: Vec<Evaluation>) {
        let all: Vec<&Evaluation> = evaluations.iter().collect();
        if let Some(caveat) = caveat(&all) {
            self.say(caveat);
        }
        let mut differing: Vec<&str> =
            all.iter().filter(|e| !e.differences.is_empty()).map(|e| e.dataset.as_str()).collect();
        differing.dedup();
        if !differing.is_empty() {
            self.say(format!("files that are not as published: {}", differing.join(", ")));
        }
        self.evaluations = evaluations;
    }

    pub(super) fn draw(&mut self, suffix: &'static str, title: impl Into<String>, svg: String) {
        self.pictures.push(Picture { suffix, title: title.into(), svg });
    }

    /// Writes the report as a page of Markdown. `command` is what made it.
    pub fn markdown(&self, command: &str) -> String {
        let mut page = format!("# {}\n\nIn the paper: {}.\n", self.item.title(), self.item.labels());
        if !command.is_empty() {
            page += &format!("\n```sh\n{command}\n```\n");
        }
        if !self.protocol.is_empty() {
            page.push('\n');
            self.protocol.iter().for_each(|line| page += &format!("- {line}\n"));
        }
        for picture in &self.pictures {
            page += &format!("\n![{}]({})\n", picture.title, self.file(picture.suffix, "svg"));
        }
        for section in &self.sections {
            page += &format!("\n## {}\n\n{}", section.title, section.sheet.markdown());
            if !section.notes.is_empty() {
                page.push('\n');
                section.notes.iter().for_each(|note| page += &format!("- {note}\n"));
            }
        }
        page
    }

    fn file(&self, suffix: &str, ending: &str) -> String {
        let joint = if suffix.is_empty() { "" } else { "-" };
        format!("{}{joint}{suffix}.{ending}", self.item.name())
    }

    /// Writes every form of the report into a directory. Returns the files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, out: &Path, command: &str) -> Result<Vec<PathBuf>, EvalError> {
        let mut files = Vec::new();
        let mut put = |name: String, text: &str| {
            files.push(out.join(name));
            write_text(&files[files.len() - 1], text)
        };
        put(self.file("", "md"), &self.markdown(command))?;
        for section in &self.sections {
            put(self.file(section.suffix, "csv"), &section.plain.as_ref().unwrap_or(&section.sheet).csv())?;
        }
        for picture in &self.pictures {
            put(self.file(picture.suffix, "svg"), &picture.svg)?;
        }
        if !self.evaluations.is_empty() {
            files.push(out.join(self.file("results", "json")));
            results::write(&files[files.len() - 1], &self.evaluations)?;
        }
        Ok(files)
    }
}
