//! Values in the text of a command, and in what is typed into a terminal.

use std::ops::Range;

use super::Pass;
use super::interpreters::second_interpreters;
use super::misplaced::{Insert, Takes, misplaced};
use crate::check::scope::Scope;
use crate::diagnostic::{Code, Diagnostic};
use crate::expression::{Analysis, Kinds};
use crate::source::{Span, Tree};
use crate::tools;

impl<'d> Pass<'_, 'd> {
    pub(super) fn command(
        &mut self,
        text: &str,
        tree: &'d Tree,
        analysis: &Analysis,
        variables: &[(Range<usize>, &str)],
        is_typed: bool,
        scope: &Scope<'d>,
    ) {
        let mut inserts: Vec<Insert> = Vec::new();
        for interpolation in &analysis.interpolations {
            let at = self.checker.within(tree, &interpolation.range);
            let before = &text[..interpolation.range.start];
            if before.ends_with('$') && !before.ends_with("\\$") {
                self.checker.report(
                    Diagnostic::new(Code::DollarBefore, at)
                        .message("the `$` before this expression stays in the command")
                        .label("an expression is `{{ … }}` alone")
                        .help("drop the `$`, or write `\\$` where a dollar sign is meant"),
                );
            }
            if interpolation
                .filters
                .iter()
                .any(|filter| filter == "unquoted")
            {
                self.checker.report(
                    Diagnostic::new(Code::Unquoted, at)
                        .message("this value reaches the shell unquoted: it can run any command")
                        .help("drop `| unquoted`; a list becomes several words by itself"),
                );
                inserts.push(Insert {
                    range: interpolation.range.clone(),
                    quoted: false,
                });
                continue;
            }
            inserts.push(Insert {
                range: interpolation.range.clone(),
                quoted: true,
            });
        }
        let known = variables
            .iter()
            .filter(|(_, name)| self.may_be_set(name, scope));
        inserts.extend(known.map(|(range, _)| Insert {
            range: range.clone(),
            quoted: true,
        }));
        inserts.sort_by_key(|insert| insert.range.start);
        for (index, program) in second_interpreters(text, &inserts) {
            let Some(insert) = inserts.get(index) else {
                continue;
            };
            let at = self.checker.within(tree, &insert.range);
            self.checker.report(
                Diagnostic::new(Code::SecondInterpreter, at)
                    .message(format!(
                        "`{program}` reads this value a second time, as code"
                    ))
                    .label("quoted for the first shell only")
                    .help("pass it as an argument or in `env`, and read it there as a variable"),
            );
        }
        for finding in misplaced(text, &inserts, is_typed) {
            let Some(insert) = inserts.get(finding.index) else {
                continue;
            };
            let kinds = self.text_kinds(&text[insert.range.clone()], scope);
            let can_stand = match finding.takes {
                Takes::Nothing => false,
                Takes::Plain => kinds.is_only(Kinds::WHOLE | Kinds::BOOLEAN),
                Takes::Numbers => kinds.may_be(Kinds::NUMBER | Kinds::DIGITS | Kinds::LIST),
                Takes::Names => kinds.may_be(Kinds::TEXT | Kinds::WHOLE | Kinds::LIST),
                Takes::NoSecrets => kinds == Kinds::ANY || !kinds.may_be(Kinds::SECRET),
            };
            if can_stand {
                continue;
            }
            let at = self.checker.within(tree, &insert.range);
            self.checker.report(
                Diagnostic::new(Code::MisplacedValue, at)
                    .message(finding.why.to_string())
                    .label(match finding.takes {
                        Takes::Numbers | Takes::Names => "read again after its quotes are gone",
                        Takes::Nothing | Takes::Plain | Takes::NoSecrets => {
                            "nothing can be quoted here"
                        }
                    })
                    .help(finding.why.help),
            );
        }
    }

    /// Whether `{name}` may be a variable, as far as can be seen: a standard one, an input, a field
    /// of the state, or `<state>_<field>`.
    fn may_be_set(&self, name: &str, scope: &Scope<'d>) -> bool {
        let mut states = self.checker.document.steps.iter();
        tools::standard_variable(name).is_some()
            || self.is_variable(name, scope)
            || states.any(|state| {
                let field = name.strip_prefix(state.id.value.as_str());
                field.is_some_and(|field| field.len() > 1 && field.starts_with('_'))
            })
    }

    pub(super) fn typed(
        &mut self,
        tree: &'d Tree,
        analysis: &Analysis,
        variables: &[(Range<usize>, &str)],
        scope: &Scope<'d>,
    ) {
        let unquoted = analysis
            .interpolations
            .iter()
            .filter(|i| i.filters.last().is_none_or(|last| last != "sh"))
            .map(|i| &i.range);
        let braced = variables
            .iter()
            .filter(|(_, name)| *name != "session_id")
            .filter(|(_, name)| self.may_be_set(name, scope))
            .map(|(range, _)| range);
        let mut places: Vec<Span> = unquoted
            .chain(braced)
            .map(|range| self.checker.within(tree, range))
            .collect();
        places.sort_by_key(|span| (span.start, span.end));
        let Some((first, others)) = places.split_first() else {
            return;
        };
        // One text is typed at once, and is one finding.
        let message = match others {
            [] => "this value is typed as it is: the program in front may run it",
            [_, ..] => "these values are typed as they are: the program in front may run them",
        };
        let finding = Diagnostic::new(Code::TypedValue, *first)
            .message(message)
            .label("not quoted")
            .help("add `| sh` when a shell reads it: `{{ … | sh }}`");
        let related = |finding: Diagnostic, at: &Span| finding.related(*at, "nor is this");
        self.checker.report(others.iter().fold(finding, related));
    }
}
