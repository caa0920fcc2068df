//! Values in the text of a command, and in what is typed into a terminal.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::Pass;
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
        for value in inserts.iter().filter(|it| it.quoted).map(|it| &it.range) {
            if let Some(program) = second_interpreter(&text[..value.start]) {
                let at = self.checker.within(tree, value);
                self.checker.report(
                    Diagnostic::new(Code::SecondInterpreter, at)
                        .message(format!(
                            "`{program}` reads this value a second time, as code"
                        ))
                        .label("quoted for the first shell only")
                        .help(
                            "pass it as an argument or in `env`, and read it there as a variable",
                        ),
                );
            }
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
                Takes::NoSecrets => kinds == Kinds::ANY || !kinds.may_be(Kinds::SECRET),
            };
            if can_stand {
                continue;
            }
            let at = self.checker.within(tree, &insert.range);
            self.checker.report(
                Diagnostic::new(Code::MisplacedValue, at)
                    .message(finding.why.to_string())
                    .label("nothing can be quoted here")
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
        let places: Vec<Span> = unquoted
            .chain(braced)
            .map(|range| self.checker.within(tree, range))
            .collect();
        for at in places {
            self.checker.report(
                Diagnostic::new(Code::TypedValue, at)
                    .message("this value is typed as it is: the program in front may run it")
                    .label("not quoted")
                    .help("add `| sh` when a shell reads it: `{{ … | sh }}`"),
            );
        }
    }
}

/// The program that will read a value as code, from the command text before the value.
fn second_interpreter(before: &str) -> Option<&str> {
    // Nobody looks for the program of a value further away than this.
    const FURTHEST: usize = 4096;
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(FURTHEST))..];
    static PROGRAM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?x) (?-u:\b)(?:
                (?P<shell>(?:ba|z|da|k|fi)?sh|su)[\t\ ]+(?:[^\t\ ]+[\t\ ]+)*?-[a-zA-Z]*c(?-u:\b)
              | (?P<eval>eval|ssh)(?-u:\b)
              | (?P<script>python[0-9.]*|perl|ruby|node|php)[\t\ ]+(?:-[^\t\ ]+[\t\ ]+)*?-[cer](?-u:\b)
            )",
        )
        .ok()
    });
    let start = before
        .rfind(['\n', ';', '|'])
        .into_iter()
        .chain(before.rfind("&&").map(|at| at + 1))
        .max()
        .map_or(0, |at| at + 1);
    // A separator inside quotes does not end the command that the quotes belong to.
    let command = if before[start..].matches(['"', '\'']).count() % 2 == 1 || start == 0 {
        &before[start..]
    } else {
        before
            .rfind('\n')
            .map_or(before, |newline| &before[newline + 1..])
    };
    let found = PROGRAM.as_ref()?.captures(command)?;
    let program = ["shell", "eval", "script"]
        .iter()
        .find_map(|name| found.name(name))?;
    Some(program.as_str())
}
