//! Every expression of a document: does it parse, and does each name in it mean something?

mod commands;
mod misplaced;
mod names;
mod patterns;

use std::ops::Range;

use super::Checker;
use super::scope::{FieldRead, Place, Scope, Space, address, spaces, static_field};
use super::values::is_literal;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Act, Condition, Path, Step, Write};
use crate::expression::{self, Analysis, Dialect, Fault, FaultKind, Form as TextForm};
use crate::graph::{Form, Tier, Type};
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
        self.writes(&step.writes, step, &scope, &mut reads);
        let failing = Scope {
            error: true,
            ..scope.clone()
        };
        self.writes(&step.error_writes, step, &failing, &mut reads);
        let written = step.writes.iter().map(|write| write.path.text);
        let after = Scope {
            result: true,
            open: true,
            local: written
                .filter_map(|path| static_field(path, scope.dialect))
                .map(|(_, field)| field)
                .collect(),
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
                        Some(Reader::Shell) => Role::Command,
                        Some(Reader::Program) => Role::Typed,
                        Some(Reader::Pattern) => Role::Pattern,
                        Some(Reader::Tool | Reader::Run) | None => Role::Template,
                    };
                    see(self, tree, role);
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
                self.typed_write(write, value, scope.dialect);
            }
            if let Some((_, field)) = static_field(write.path.text, scope.dialect) {
                scope.local.push(field);
            }
        }
    }

    /// A literal written to a field with a declared type.
    fn typed_write(&mut self, write: &Write<'d>, value: &'d Tree, dialect: Dialect) {
        let Some((tier, field)) = static_field(write.path.text, dialect) else {
            return;
        };
        let whole = split_path(write.path.text, dialect).is_some_and(|(_, s)| s.len() == 1);
        let sets = write.operation == crate::graph::Operation::Set;
        let state = &self.checker.document.state;
        let named = |by_hand: bool| {
            let mut fields = state.iter();
            fields.find(|declared| declared.name.value == field && declared.by_hand == by_hand)
        };
        let declared = match tier {
            Tier::State => named(true).or_else(|| named(false)),
            _ => named(false),
        };
        if let Some(declared) = declared
            && declared.ty != Type::Any
            && whole
            && sets
        {
            self.checker
                .literal_fits(value, declared.ty, dialect, field);
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
        if !explicit && segments.len() > 1 && matches!(field, "this" | "inputs") {
            let rest = &path.text[segments[1].start..];
            let (why, way) = match field {
                "inputs" => (
                    "inputs are read-only",
                    format!("write a field of the state, such as `{rest}`"),
                ),
                _ => (
                    "`this` is for reading",
                    format!("write `{rest}`, which `this.{rest}` reads"),
                ),
            };
            self.checker.report(
                Diagnostic::new(Code::BadPath, path.span)
                    .message(format!("`{}` cannot be written: {why}", path.text))
                    .help(way),
            );
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
            Role::Condition | Role::Items | Role::Template | Role::Command | Role::Typed => {
                expression::braced(text)
            }
        };
        for (_, name) in &variables {
            self.variable(name, scope);
        }
        match role {
            Role::Command => self.command(text, tree, &analysis, &variables, scope),
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

    /// What a field of the state is, if that is known and not a list: by its declared type, or by
    /// the value it begins with where nothing writes another.
    fn unlisted_field(&self, text: &str, scope: &Scope<'d>) -> Option<&'static str> {
        let (before, name) = text.rsplit_once('.').unwrap_or(("", text));
        let place = match before {
            "state" | "this" => None,
            "raw" | "state.raw" => Some(Place::Raw),
            // A name alone may be something else where it stands.
            "" if !scope.open && !scope.local.contains(&name) => None,
            _ => return None,
        };
        let space = self.space(scope);
        let found = place.or_else(|| space.fields.get(name)?.first().copied())?;
        let by_hand = match found {
            Place::Raw => false,
            Place::State => true,
            Place::Computed => return None,
        };
        let document = self.checker.document;
        let (state, dialect) = match scope.space {
            0 => (&document.state, document.dialect),
            unit => {
                let task = document.tasks.get(unit - 1)?;
                (&task.state, task.dialect)
            }
        };
        let mut fields = state.iter();
        let field = fields.find(|it| it.name.value == name && it.by_hand == by_hand)?;
        if field.ty != Type::Any {
            return unlisted(field.ty);
        }
        let value = field.value?;
        let is_kept = !space.open && !space.written.contains(name);
        let is_other = !matches!(value.value, Value::List(_) | Value::Null);
        (is_kept && is_other && is_literal(value, dialect)).then(|| value.noun())
    }

    /// `items` that is known not to be a list.
    fn known_list(&mut self, items: &'d Tree, scope: &Scope<'d>) {
        let document = self.checker.document;
        let not_a_list = match &items.value {
            Value::List(_) => None,
            Value::Str(scalar) => {
                let text = match expression::form(&scalar.text, scope.dialect) {
                    TextForm::Sole(range) => scalar.text[range].trim(),
                    TextForm::Literal => scalar.text.trim(),
                    TextForm::Text => return,
                };
                let fields = match scope.unit {
                    0 => document.inputs.as_deref(),
                    unit => document.tasks[unit - 1].inputs.as_deref(),
                };
                let input = text.strip_prefix("inputs.").and_then(|name| {
                    let mut fields = fields.unwrap_or_default().iter();
                    let field = fields.find(|field| field.name.value == name)?;
                    unlisted(field.ty)
                });
                input.or_else(|| self.unlisted_field(text, scope))
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Map(_) => {
                Some(items.noun())
            }
        };
        if let Some(noun) = not_a_list {
            self.checker.report(
                Diagnostic::new(Code::NotAList, self.checker.line(items.span))
                    .message(format!("`foreach` runs over a list, and this is {noun}"))
                    .label(format!("this is {noun}"))
                    .help("give a list, or an expression that yields one"),
            );
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

/// What a value of a type is that cannot be a list.
fn unlisted(ty: Type) -> Option<&'static str> {
    (!matches!(ty, Type::Array | Type::Any)).then(|| type_noun(ty))
}

fn type_noun(ty: Type) -> &'static str {
    match ty {
        Type::Any => "anything",
        Type::String => "text",
        Type::Number | Type::Integer => "a number",
        Type::Boolean => "a boolean",
        Type::Array => "a list",
        Type::Object => "a map",
    }
}

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
