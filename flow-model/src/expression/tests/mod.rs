//! What both dialects promise, in pictures: the source, and `~` under what is meant.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod braces;
mod forms;
mod hostile;
#[cfg(feature = "js")]
mod javascript;
mod jinja_names;
mod jinja_reads;
mod jinja_syntax;
mod samples;

use std::ops::Range;

use super::Dialect::{Jinja, Js};
use super::*;

/// Draws `~` under `ranges` of a single line, a column per character.
fn underline(source: &str, ranges: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut marks = vec![' '; source.chars().count()];
    for range in ranges {
        let start = source[..range.start].chars().count();
        let length = source[range].chars().count();
        assert!(length > 0, "an empty range under {source}");
        marks[start..start + length].fill('~');
    }
    marks.into_iter().collect::<String>().trim_end().to_owned()
}

/// Asserts that `picture` is a source and `~` under the faults a template has.
fn faults_at(dialect: Dialect, picture: [&str; 2]) -> Vec<Fault> {
    let analysis = template(picture[0], dialect);
    let ranges = analysis.faults.iter().map(|fault| fault.range.clone());
    assert_eq!(
        underline(picture[0], ranges),
        picture[1],
        "\n{}\n{:#?}",
        picture[0],
        analysis
    );
    analysis.faults
}

/// Asserts that `picture` is a source and `~` under the reads a template has.
fn reads_at(dialect: Dialect, picture: [&str; 2]) -> Vec<Read> {
    let analysis = template(picture[0], dialect);
    assert_eq!(analysis.faults, [], "{}", picture[0]);
    let ranges = analysis.reads.iter().map(|read| read.range.clone());
    assert_eq!(
        underline(picture[0], ranges),
        picture[1],
        "\n{}\n{:#?}",
        picture[0],
        analysis
    );
    analysis.reads
}

fn paths(reads: &[Read]) -> Vec<String> {
    let mark = |read: &Read| match (read.dynamic, read.optional) {
        (false, false) => "",
        (true, false) => "[]",
        (false, true) => "?",
        (true, true) => "[]?",
    };
    reads
        .iter()
        .map(|read| read.path.join(".") + mark(read))
        .collect()
}

fn read_paths(text: &str, dialect: Dialect) -> Vec<String> {
    let analysis = template(text, dialect);
    assert_eq!(analysis.faults, [], "{text}");
    paths(&analysis.reads)
}
