//! Values in a regular expression.

use std::ops::Range;

use super::Pass;
use crate::expression::{self, Analysis, Dialect, Piece};
use crate::source::Tree;

impl<'d> Pass<'_, 'd> {
    /// A regular expression, as far as the text tells. A value stands for text that is found as it
    /// is, so that any letters may stand for it here.
    pub(super) fn pattern(
        &mut self,
        text: &str,
        tree: &'d Tree,
        analysis: &Analysis,
        variables: &[(Range<usize>, &str)],
        dialect: Dialect,
    ) {
        let is_unquoted = |filters: &[String]| filters.iter().any(|filter| filter == "unquoted");
        let mut interpolations = analysis.interpolations.iter();
        let has_statements = || {
            let mut pieces = expression::pieces(text, dialect).into_iter();
            pieces.any(|piece| matches!(piece, Piece::Statement(_) | Piece::Raw { .. }))
        };
        // A part of the expression that only a run has.
        if interpolations.any(|it| is_unquoted(&it.filters)) || has_statements() {
            return;
        }
        let values = analysis.interpolations.iter().map(|it| &it.range);
        let values = values.chain(variables.iter().map(|(range, _)| range));
        let mut constant = text.to_owned();
        for range in values {
            constant.replace_range(range.clone(), &"x".repeat(range.len()));
        }
        self.checker.regex_text(&constant, tree);
    }
}
