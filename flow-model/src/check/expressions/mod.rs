//! Every expression of a document: does it parse, and does each name in it mean something?

mod commands;
mod interpreters;
mod kinds;
mod misplaced;
mod names;
mod patterns;

use std::ops::Range;

use super::Checker;
use super::scope::{FieldRead, Place, Scope, Space, address, spaces, static_field};
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Act, Condition, Path, Step, Write};
use crate::expression::{self, Analysis, Dialect, Fault, FaultKind, Form as TextForm};
use crate::graph::{Form, Tier};
use crate::lower::split_path;
use crate::source::{Span, Tree, Value};
use crate::tools::{self, Reader};

use names::ReadAt;
pub(super) use names::segments;

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// `if`, `when`, `expression`: a sole interpolation, or bare.
    Condition,
    /// `items`: the same, or a list.
    Items,
    /// Any value; texts are templates.
    Template,
    /// A shell command.
    Command,
    /// One that the shell of a terminal reads.
    TerminalCommand,
    /// Text typed into a terminal.
    Typed,
    /// A regular expression.
    Pattern,
}

/// Reads of one step, collected while its expressions are analysed.
type Reads = Vec<FieldRead>;

impl<'d> Checker<'d> {
    pub(super) fn expressions(&mut self) {
        let spaces = spaces(self.document);
        let document = self.document;
        let main = Scope {
            unit: 0,
            space: 0,
            inputs: names_of(document.inputs.as_deref()),
            dialect: document.dialect,
            state: true,
            item: false,
            looped: false,
            error: false,
            result: false,
            open: document.form == Some(Form::States),
            braces: document.form == Some(Form::States),
            needs: None,
            local: Vec::new(),
            written: false,
        };
        let mut pass = Pass {
            checker: self,
            spaces: &spaces,
        };
        let start = Scope {
            state: false,
            ..main.clone()
        };
        for field in &document.state {
            if let Some(value) = field.value {
                pass.tree(value, Role::Template, &start, &mut Reads::new());
            }
        }
        for field in &document.computed {
            let scope = Scope {
                dialect: field.dialect,
                ..main.clone()
            };
            if let Some(value) = field.value {
                let role = match expression::form(value.as_str().unwrap_or_default(), field.dialect)
                {
                    TextForm::Literal => Role::Condition,
                    TextForm::Sole(_) | TextForm::Text => Role::Template,
                };
                pass.tree(value, role, &scope, &mut Reads::new());
            }
        }
        for step in &document.steps {
            pass.step(step, &main);
        }
        for output in &document.outputs {
            pass.tree(output.value, Role::Template, &main, &mut Reads::new());
            pass.typed_output(output, &main);
        }
        let failing = Scope {
            error: true,
            ..main.clone()
        };
        if let Some(tree) = document.on_error.collect_to {
            pass.path_tree(tree, &failing, &mut Reads::new());
        }
        for step in &document.on_error.steps {
            pass.step(step, &failing);
        }
        for (index, task) in document.tasks.iter().enumerate() {
            let scope = Scope {
                unit: index + 1,
                space: if task.shares_state { 0 } else { index + 1 },
                inputs: names_of(task.inputs.as_deref()),
                dialect: task.dialect,
                item: true,
                looped: true,
                open: false,
                braces: false,
                ..main.clone()
            };
            let start = Scope {
                state: false,
                ..scope.clone()
            };
            for field in &task.state {
                if let Some(value) = field.value {
                    pass.tree(value, Role::Template, &start, &mut Reads::new());
                }
            }
            for step in &task.steps {
                pass.step(step, &scope);
            }
            let failing = Scope {
                error: true,
                ..scope.clone()
            };
            for step in &task.cleanup {
                pass.step(step, &failing);
            }
        }
    }
}

fn names_of<'d>(fields: Option<&'d [crate::document::Field<'d>]>) -> Option<Vec<&'d str>> {
    fields.map(|fields| {
        fields
            .iter()
            .map(|field| field.name.value.as_str())
            .collect()
    })
}

struct Pass<'c, 'd> {
    checker: &'c mut Checker<'d>,
    spaces: &'c [Space<'d>],
}

impl<'d> Pass<'_, 'd> {
    fn space(&self, scope: &Scope<'d>) -> &Space<'d> {
        &self.spaces[scope.space.min(self.spaces.len() - 1)]
    }

    fn step(&mut self, step: &'d Step<'d>, around: &Scope<'d>) {
        let mut reads = Reads::new();
        let scope = Scope {
            needs: step.needs_state.as_deref(),
            ..around.clone()
        };
        self.needs_state(step, &scope);
        if let Some(when) = step.when {
            self.tree(when, Role::Condition, &scope, &mut reads);
        }
        self.act(step, &scope, &mut reads);
        if let Some(value) = step.fallback_value {
            self.tree(value, Role::Template, &scope, &mut reads);
        }
        self.writes(&step.writes, step, false, &scope, &mut reads);
        let failing = Scope {
            error: true,
            ..scope.clone()
        };
        self.writes(&step.error_writes, step, true, &failing, &mut reads);
        let written = step.writes.iter().map(|write| write.path.text);
        let after = Scope {
            result: true,
            open: true,
            local: written
                .filter_map(|path| static_field(path, scope.dialect))
                .map(|(_, field)| field)
                .collect(),
            written: true,
            ..scope
        };
        for transition in step.exits.iter().flat_map(|exits| &exits.transitions) {
            self.condition(&transition.condition, &after, &mut reads);
        }
        self.checker.uses.by_step.insert(address(step), reads);
        let inner = Scope {
            item: around.item || matches!(step.act, Act::Loop { .. }),
            looped: around.looped || step.is_loop(),
            ..around.clone()
        };
        for body in step.bodies() {
            for step in body {
                self.step(step, &inner);
            }
        }
    }

    fn needs_state(&mut self, step: &'d Step<'d>, scope: &Scope<'d>) {
        let Some(names) = scope.needs else {
            if self.checker.document.strict && step.exits.is_none() {
                self.checker.report(
                    Diagnostic::new(Code::NeedsStateRequired, step.head)
                        .message(format!(
                            "step `{}` does not say which state it reads",
                            step.id.value
                        ))
                        .help("add `needs_state:` with the fields its templates read, or `[]`"),
                );
            }
            return;
        };
        for name in names {
            if !self.space(scope).has(&name.value) {
                self.unknown_field(&name.value, name.span, scope);
            }
        }
    }

    fn act(&mut self, step: &'d Step<'d>, scope: &Scope<'d>, reads: &mut Reads) {
        let mut see = |pass: &mut Self, tree: &'d Tree, role: Role| {
            pass.tree(tree, role, scope, reads);
        };
        match &step.act {
            Act::Condition { test, .. } => see(self, test, Role::Condition),
            Act::While { test, .. } => {
                // The test is evaluated once per iteration, when the loop is there already.
                let inside = Scope {
                    looped: true,
                    ..scope.clone()
                };
                self.tree(test, Role::Condition, &inside, reads);
            }
            Act::Loop { items, .. } => {
                see(self, items, Role::Items);
                self.known_list(items, scope);
            }
            Act::FanOut {
                items,
                prompt,
                collect_to,
                ..
            } => {
                see(self, items, Role::Items);
                if let Some(tree) = collect_to {
                    self.path_tree(tree, scope, reads);
                }
                // The prompt is rendered per child, when the item exists.
                if let Some(prompt) = prompt {
                    let child = Scope {
                        item: true,
                        looped: true,
                        ..scope.clone()
                    };
                    self.tree(prompt, Role::Template, &child, reads);
                }
                self.known_list(items, scope);
            }
            Act::Break | Act::Continue | Act::Goto { .. } | Act::SetState => {}
            Act::Return { value } => {
                if let Some(value) = value {
                    see(self, value, Role::Template);
                }
            }
            Act::Call {
                workflow, inputs, ..
            } => {
                see(self, workflow, Role::Template);
                for (_, tree) in inputs {
                    see(self, tree, Role::Template);
                }
                self.given(workflow, inputs, scope);
            }
            Act::Shell {
                command,
                env,
                working_directory,
                reason,
                ..
            } => {
                see(self, command, Role::Command);
                for (_, tree) in env {
                    see(self, tree, Role::Template);
                }
                for tree in working_directory.iter().chain(reason) {
                    see(self, tree, Role::Template);
                }
            }
            Act::Tool {
                tool, parameters, ..
            } => {
                let document = self.checker.document;
                let declared = document.tools.iter().any(|t| t.name.value == tool.value);
                let builtin = tools::find(&tool.value).filter(|_| !declared);
                for (name, tree) in parameters {
                    let reader = builtin.map(|tool| tool.reader(&name.value));
                    if reader == Some(Reader::Run) && !stands_for_all(tree, document.dialect) {
                        continue;
                    }
                    let role = match reader {
                        Some(Reader::Shell) => Role::TerminalCommand,
                        Some(Reader::Program) => Role::Typed,
                        Some(Reader::Pattern) => Role::Pattern,
                        Some(Reader::Tool | Reader::Run) | None => Role::Template,
                    };
                    see(self, tree, role);
                }
                if let Some(call) = super::actions::Called::of(tool, builtin, parameters)
                    && let Some(inputs) = &call.inputs
                {
                    self.given(call.workflow, inputs, scope);
                }
            }
            Act::Prompt {
                message, options, ..
            } => {
                see(self, message, Role::Template);
                if let Some(options) = options {
                    let role = match options.as_str() {
                        Some(_) => Role::Items,
                        None => Role::Template,
                    };
                    see(self, options, role);
                }
            }
            Act::Wait { duration, message } => {
                match crate::structure::duration(duration) {
                    None => see(self, duration, Role::Condition),
                    // A number has been held against its limits already.
                    Some(seconds) if seconds > MAX_WAIT && duration.as_str().is_some() => {
                        self.checker.report(
                            Diagnostic::new(Code::OutOfLimits, duration.span)
                                .message("a wait takes at most 30 days")
                                .label("more than 30 days"),
                        )
                    }
                    Some(_) => {}
                }
                if let Some(message) = message {
                    see(self, message, Role::Template);
                }
            }
            Act::Delegate { instructions, .. } => see(self, instructions, Role::Template),
        }
    }

    fn condition(&mut self, condition: &Condition<'d>, scope: &Scope<'d>, reads: &mut Reads) {
        match condition {
            Condition::Expression(tree) => self.tree(tree, Role::Condition, scope, reads),
            Condition::Equals(_, tree) | Condition::Contains(_, tree) => {
                self.tree(tree, Role::Template, scope, reads);
            }
            Condition::Match(tree) | Condition::NoMatch(tree) => {
                self.tree(tree, Role::Pattern, scope, reads);
            }
            Condition::All(inner) | Condition::Any(inner) => {
                for one in inner {
                    self.condition(one, scope, reads);
                }
            }
            Condition::Not(inner) => self.condition(inner, scope, reads),
            Condition::Always
            | Condition::Success(_)
            | Condition::TimedOut(_)
            | Condition::Judged(_) => {}
        }
    }

    fn writes(
        &mut self,
        writes: &'d [Write<'d>],
        step: &'d Step<'d>,
        fails: bool,
        scope: &Scope<'d>,
        reads: &mut Reads,
    ) {
        let sets = matches!(step.act, Act::SetState);
        let mut scope = Scope {
            result: !sets || scope.error,
            open: scope.open || !sets,
            ..scope.clone()
        };
        for write in writes {
            scope.result |= write.beside;
            self.path(&write.path, &scope, reads);
            if let Some(value) = write.value {
                self.tree(value, Role::Template, &scope, reads);
            }
            self.typed_write(write, step, fails, &scope);
            if let Some((_, field)) = static_field(write.path.text, scope.dialect) {
                scope.local.push(field);
            }
        }
    }

    fn path_tree(&mut self, tree: &'d Tree, scope: &Scope<'d>, reads: &mut Reads) {
        let Some(text) = tree.as_str() else {
            return;
        };
        let path = Path {
            text,
            span: tree.span,
            tree: Some(tree),
        };
        self.path(&path, scope, reads);
    }

    fn path(&mut self, path: &Path<'d>, scope: &Scope<'d>, reads: &mut Reads) {
        if path.text.contains("{{") {
            let analysis = expression::template(path.text, scope.dialect);
            self.analysis(&analysis, path.text, path.tree, path.span, scope, reads);
        }
        let Some((tier, segments)) = split_path(path.text, scope.dialect) else {
            self.checker.report(
                Diagnostic::new(Code::BadPath, path.span)
                    .message(format!("`{}` is not a state path", path.text))
                    .help("write a field, or fields joined by dots: `results.first`"),
            );
            return;
        };
        let field = &path.text[segments[0].clone()];
        let explicit = segments[0].start > 0;
        if let [_, below, ..] = segments.as_slice()
            && !explicit
            && self.is_no_tier(field)
        {
            let rest = &path.text[below.start..];
            let help = match field {
                "this" => format!("write `{rest}`: a path begins with the field itself"),
                _ => format!("inputs do not change: write a field of the state, such as `{rest}`"),
            };
            let mut finding = Diagnostic::new(Code::BadPath, path.span)
                .message(format!(
                    "`{}` would write a field named `{field}`, which `{field}.…` never reads",
                    path.text
                ))
                .label("not a path of the state")
                .help(help);
            finding.suggestion = Some(rest.to_owned());
            self.checker.report(finding);
            return;
        }
        let derived = self
            .space(scope)
            .fields
            .get(field)
            .is_some_and(|tiers| tiers.contains(&Place::Computed));
        if tier == Tier::Computed || (derived && !explicit) {
            self.checker.report(
                Diagnostic::new(Code::WriteToComputed, path.span)
                    .message(format!("`{field}` is computed and cannot be written"))
                    .label("a write to a computed field")
                    .help("write the fields it is made from; it follows"),
            );
        } else if derived {
            // Where the tier has such a field of its own, that has been said there.
            let mut declared = self.checker.document.state.iter();
            if declared.all(|declared| declared.name.value != field) {
                let tier = if tier == Tier::State { "state" } else { "raw" };
                self.checker.report(
                    Diagnostic::new(Code::ShadowedTier, path.span)
                        .message(format!(
                            "`{field}` is computed, and this writes another field of that name: \
                             reading it finds computed, never {tier}"
                        ))
                        .help("give what is written another name"),
                );
            }
        }
    }

    /// Whether a path that begins with this name means something else where it is read.
    fn is_no_tier(&self, name: &str) -> bool {
        let mut declared = self.checker.document.state.iter();
        matches!(name, "this" | "inputs") && declared.all(|field| field.name.value != name)
    }

    fn tree(&mut self, tree: &'d Tree, role: Role, scope: &Scope<'d>, reads: &mut Reads) {
        match &tree.value {
            Value::Str(scalar) => self.text(&scalar.text, tree, role, scope, reads),
            Value::List(items) => {
                for item in items {
                    self.tree(item, Role::Template, scope, reads);
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    self.tree(&entry.value, Role::Template, scope, reads);
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
        }
    }

    fn text(
        &mut self,
        text: &'d str,
        tree: &'d Tree,
        role: Role,
        scope: &Scope<'d>,
        reads: &mut Reads,
    ) {
        let form = expression::form(text, scope.dialect);
        let bare = matches!(role, Role::Condition | Role::Items);
        let analysis = match (&form, bare) {
            (TextForm::Literal, true) => expression::expression(text, scope.dialect),
            (TextForm::Literal, false) => Analysis::default(),
            (TextForm::Sole(_) | TextForm::Text, _) => expression::template(text, scope.dialect),
        };
        self.analysis(&analysis, text, Some(tree), tree.span, scope, reads);
        if form == TextForm::Text && bare && analysis.faults.is_empty() {
            let (label, help) = match role {
                Role::Items => (
                    "this is text, and text is not a list",
                    "give the list alone, inside one `{{ … }}`",
                ),
                _ => (
                    "this is text, and text is always true",
                    "put the whole condition inside one `{{ … }}`",
                ),
            };
            self.checker.report(
                Diagnostic::new(Code::TextAround, self.checker.line(tree.span))
                    .message("there is text around the expression")
                    .label(label)
                    .help(help),
            );
        }
        let variables = match role {
            _ if !scope.braces => Vec::new(),
            Role::Pattern => expression::braced_pattern(text),
            Role::Condition
            | Role::Items
            | Role::Template
            | Role::Command
            | Role::TerminalCommand
            | Role::Typed => expression::braced(text),
        };
        for (_, name) in &variables {
            self.variable(name, scope);
        }
        match role {
            Role::Command | Role::TerminalCommand => {
                let is_typed = role == Role::TerminalCommand;
                self.command(text, tree, &analysis, &variables, is_typed, scope);
            }
            Role::Typed => self.typed(tree, &analysis, &variables, scope),
            Role::Pattern if analysis.faults.is_empty() => {
                self.pattern(text, tree, &analysis, &variables, scope.dialect);
            }
            Role::Condition | Role::Items | Role::Template | Role::Pattern => {}
        }
    }

    fn analysis(
        &mut self,
        analysis: &Analysis,
        text: &str,
        tree: Option<&'d Tree>,
        span: Span,
        scope: &Scope<'d>,
        reads: &mut Reads,
    ) {
        let broken = |fault: &Fault| fault.kind == FaultKind::Syntax;
        if analysis.faults.iter().any(broken)
            && let Some(text) = tree.and_then(Tree::as_str)
        {
            self.checker.lost.text(text);
        }
        for fault in &analysis.faults {
            let at = self.place(text, tree, span, &fault.range);
            let (code, suggestion) = match &fault.kind {
                FaultKind::Syntax => match scope.dialect {
                    Dialect::Jinja => (Code::TemplateSyntax, None),
                    Dialect::Js => (Code::JavaScriptSyntax, None),
                },
                FaultKind::UnknownFilter(unknown)
                | FaultKind::UnknownFunction(unknown)
                | FaultKind::UnknownTest(unknown) => {
                    (Code::UnknownFilter, unknown.suggestion.clone())
                }
            };
            let mut finding = Diagnostic::new(code, at).message(fault.message.clone());
            finding.help = fault
                .help
                .clone()
                .or_else(|| known_names(&fault.kind, scope.dialect));
            finding.suggestion = suggestion;
            self.checker.report(finding);
        }
        for pattern in &analysis.patterns {
            // One that is bad in itself is found where it stands.
            if let Some(fault) = self.checker.pattern_fault(pattern) {
                let at = self.place(text, tree, span, &fault.range);
                self.checker.bad_regex(fault.message, at);
            }
        }
        for read in &analysis.reads {
            if let [name] = read.path.as_slice()
                && analysis.piped.iter().any(|piped| piped.range == read.range)
                && !self.is_variable(name, scope)
            {
                let at = self.place(text, tree, span, &read.range);
                self.no_filter(name, at, scope);
                continue;
            }
            let [root, key] = segments(text, read);
            let at = ReadAt {
                whole: self.place(text, tree, span, &read.range),
                root: self.place(text, tree, span, &root),
                key: self.place(text, tree, span, &key),
            };
            self.read(read, at, scope, reads);
        }
        if analysis.calls.iter().any(|call| call.name == "variable") {
            self.checker.uses.all_inputs.insert(scope.unit);
        }
    }

    /// Where a range of a text stands: in its value, or in the key it was written as.
    fn place(&self, text: &str, tree: Option<&'d Tree>, span: Span, range: &Range<usize>) -> Span {
        if let Some(tree) = tree {
            return self.checker.within(tree, range);
        }
        let source = self.checker.source(span);
        let written = source.and_then(|source| source.text().get(span.range()));
        let at = written.and_then(|written| written.find(text));
        match at {
            Some(at) => {
                let start = span.start as usize + at;
                Span::new(span.file, start + range.start..start + range.end)
            }
            None => span,
        }
    }
}

/// The names there are, when none is near the unknown one.
fn known_names(kind: &FaultKind, dialect: Dialect) -> Option<String> {
    let (noun, names) = match kind {
        FaultKind::UnknownFunction(_) if dialect == Dialect::Js => {
            ("functions", expression::vocabulary::JS_FUNCTIONS)
        }
        FaultKind::UnknownFilter(_) => ("filters", expression::vocabulary::FILTERS),
        FaultKind::UnknownFunction(_) => ("functions", expression::vocabulary::FUNCTIONS),
        FaultKind::UnknownTest(_) => ("tests", expression::vocabulary::TESTS),
        FaultKind::Syntax => return None,
    };
    Some(format!("the {noun} are `{}`", names.join("`, `")))
}

/// Seconds that a `wait` may take.
const MAX_WAIT: f64 = 30.0 * 86_400.0;

/// Whether a text is one value and nothing else.
fn stands_for_all(tree: &Tree, dialect: Dialect) -> bool {
    tree.as_str().is_some_and(|text| {
        let written = expression::unbrace(text);
        matches!(
            expression::form(&written, dialect),
            expression::Form::Sole(_)
        )
    })
}
