//! Values whose kind is known for certain, where another kind is needed.

use super::Pass;
use crate::check::scope::{Place, Scope, static_field};
use crate::check::unused::KEPT;
use crate::check::values::is_literal;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Act, Field, Output, Step, Write};
use crate::expression::{self, Dialect, Form as TextForm, Kinds};
use crate::graph::{self, Operation, OutputFormat, Tier, Type};
use crate::lower::split_path;
use crate::source::{Spanned, Tree, Value};
use crate::value::word;

impl<'d> Pass<'_, 'd> {
    /// The kinds that a value can have: a literal, or a template when it is rendered.
    pub(super) fn kinds(&self, tree: &Tree, scope: &Scope<'d>) -> Kinds {
        match &tree.value {
            Value::Null => Kinds::NULL,
            Value::Bool(_) => Kinds::BOOLEAN,
            Value::Int(_) => Kinds::WHOLE,
            Value::Float(number) if number.fract() != 0.0 => Kinds::FRACTION,
            Value::Float(_) => Kinds::NUMBER,
            Value::List(_) => Kinds::LIST,
            Value::Map(_) => Kinds::MAP,
            Value::Str(scalar) => self.text_kinds(&scalar.text, scope),
        }
    }

    /// Those of a text.
    pub(super) fn text_kinds(&self, text: &str, scope: &Scope<'d>) -> Kinds {
        // A variable that stands alone keeps its type.
        if scope.braces && !expression::braced(text).is_empty() {
            return Kinds::ANY;
        }
        match expression::form(text, scope.dialect) {
            TextForm::Literal => Kinds::of_text(text),
            TextForm::Sole(range) => self.expression_kinds(&text[range], scope),
            TextForm::Text => Kinds::TEXT | Kinds::SECRET,
        }
    }

    /// Those of a bare expression.
    pub(super) fn expression_kinds(&self, text: &str, scope: &Scope<'d>) -> Kinds {
        expression::kinds(text, scope.dialect, &|path| self.read_kinds(path, scope))
    }

    fn read_kinds(&self, path: &[String], scope: &Scope<'d>) -> Kinds {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["inputs", name] => self.input_kinds(name, scope),
            ["state" | "this", name] if scope.state => self.field_kinds(name, None, scope),
            ["raw", name] | ["state", "raw", name] if scope.state => {
                self.field_kinds(name, Some(Place::Raw), scope)
            }
            // A name alone may be something else where it stands.
            [name] if scope.state && !scope.open && !is_input(name, scope) => {
                self.field_kinds(name, None, scope)
            }
            _ => Kinds::ANY,
        }
    }

    /// The declared inputs of the workflow, or of a task.
    pub(super) fn declared_inputs(&self, scope: &Scope<'d>) -> Option<&'d [Field<'d>]> {
        let document = self.checker.document;
        match scope.unit {
            0 => document.inputs.as_deref(),
            unit => document.tasks.get(unit - 1)?.inputs.as_deref(),
        }
    }

    fn input_kinds(&self, name: &str, scope: &Scope<'d>) -> Kinds {
        let mut fields = self.declared_inputs(scope).unwrap_or_default().iter();
        let Some(field) = fields.find(|field| field.name.value == name) else {
            return Kinds::ANY;
        };
        let given = match field.secret {
            true => Kinds::SECRET,
            false => Kinds::of(field.ty),
        };
        let is_there = match field.default {
            Some(default) => default.value != Value::Null,
            None => field.required,
        };
        match is_there {
            true => given,
            false => given | Kinds::NULL,
        }
    }

    /// What a field of the state holds: by its declared type, or by the value it begins with where
    /// nothing writes another.
    fn field_kinds(&self, name: &str, place: Option<Place>, scope: &Scope<'d>) -> Kinds {
        let space = self.space(scope);
        let found = place.or_else(|| space.fields.get(name)?.first().copied());
        let by_hand = match found {
            Some(Place::Raw) => false,
            Some(Place::State) => true,
            Some(Place::Computed) | None => return Kinds::ANY,
        };
        if scope.local.contains(&name) || space.open || KEPT.contains(&name) {
            return Kinds::ANY;
        }
        if space.secrets.contains_key(name) {
            return Kinds::SECRET | Kinds::NULL;
        }
        let document = self.checker.document;
        let (state, dialect) = match scope.space {
            0 => (&document.state, document.dialect),
            unit => match document.tasks.get(unit - 1) {
                Some(task) => (&task.state, task.dialect),
                None => return Kinds::ANY,
            },
        };
        let mut fields = state.iter();
        let field = fields.find(|it| it.name.value == name && it.by_hand == by_hand);
        let Some(field) = field else {
            return Kinds::ANY;
        };
        if field.ty != Type::Any {
            return Kinds::of(field.ty) | Kinds::NULL;
        }
        match field.value {
            // What begins as nothing, or empty, is for somebody to fill in.
            Some(value)
                if !space.written.contains(name)
                    && !matches!(value.value, Value::List(_) | Value::Null)
                    && is_literal(value, dialect) =>
            {
                self.kinds(value, scope)
            }
            _ => Kinds::ANY,
        }
    }

    /// The kinds that the result of a step can have.
    fn result_kinds(&self, step: &'d Step<'d>, scope: &Scope<'d>) -> Kinds {
        let result = match &step.act {
            Act::Shell { output, .. } => match output {
                OutputFormat::Result | OutputFormat::KeyValue => Kinds::MAP,
                OutputFormat::Text => Kinds::TEXT | Kinds::SECRET,
                OutputFormat::Lines => Kinds::LIST,
                OutputFormat::Json => Kinds::ANY,
            },
            Act::Prompt { .. } | Act::Delegate { .. } => Kinds::MAP,
            Act::FanOut { .. } => Kinds::LIST,
            Act::Condition { .. }
            | Act::While { .. }
            | Act::Loop { .. }
            | Act::Break
            | Act::Continue
            | Act::Goto { .. }
            | Act::Return { .. }
            | Act::SetState
            | Act::Call { .. }
            | Act::Tool { .. }
            | Act::Wait { .. } => Kinds::ANY,
        };
        match step.fallback_value {
            Some(value) => result | self.kinds(value, scope),
            None => result,
        }
    }

    /// A write to a field with a declared type.
    pub(super) fn typed_write(
        &mut self,
        write: &Write<'d>,
        step: &'d Step<'d>,
        fails: bool,
        scope: &Scope<'d>,
    ) {
        let dialect = scope.dialect;
        let Some((tier, field)) = static_field(write.path.text, dialect) else {
            return;
        };
        let Some(ty) = self.declared_type(tier, field, scope) else {
            return;
        };
        let is_whole = split_path(write.path.text, dialect).is_some_and(|(_, s)| s.len() == 1);
        if !is_whole {
            if !matches!(ty, Type::Array | Type::Object) {
                let why = "which has no fields";
                self.unwritable(field, ty, why, "write the field itself", write);
            }
            return;
        }
        match write.operation {
            Operation::Append if ty != Type::Array => {
                let why = "and only a list is appended to";
                self.unwritable(field, ty, why, "declare it as `array`", write);
            }
            Operation::Merge if ty != Type::Object => {
                let why = "and only a map is merged into";
                self.unwritable(field, ty, why, "declare it as `object`", write);
            }
            Operation::Increment if !matches!(ty, Type::Number | Type::Integer) => {
                let why = "and only a number is incremented";
                self.unwritable(field, ty, why, "declare it as `integer`", write);
            }
            Operation::Append | Operation::Merge | Operation::Increment => {}
            Operation::Set => match write.value {
                Some(value) if is_literal(value, dialect) && !scope.braces => {
                    self.checker.literal_fits(value, ty, dialect, field);
                }
                Some(value) => {
                    let kinds = self.kinds(value, scope);
                    if !fits_field(kinds, ty) {
                        let at = self.checker.line(value.span);
                        self.misfit(field, ty, kinds, at, None);
                    }
                }
                None if fails || write.beside => {}
                None => {
                    let kinds = self.result_kinds(step, scope);
                    if !fits_field(kinds, ty) {
                        let help = result_help(&step.act);
                        self.misfit(field, ty, kinds, write.path.span, help);
                    }
                }
            },
        }
    }

    /// The type that the workflow declares for a field of its state. What a task declares for a
    /// state of its own is only known to its readers.
    fn declared_type(&self, tier: Tier, field: &str, scope: &Scope<'d>) -> Option<Type> {
        let state = &self.checker.document.state;
        let named = |by_hand: bool| {
            let mut fields = state.iter();
            fields.find(|declared| declared.name.value == field && declared.by_hand == by_hand)
        };
        let declared = match tier {
            Tier::State => named(true).or_else(|| named(false)),
            Tier::Raw | Tier::Computed => named(false),
        };
        let ty = declared?.ty;
        (ty != Type::Any && scope.space == 0).then_some(ty)
    }

    fn unwritable(&mut self, field: &str, ty: Type, why: &str, help: &str, write: &Write<'d>) {
        self.checker.report(
            Diagnostic::new(Code::BadLiteral, write.path.span)
                .message(format!("`{field}` is declared as {}, {why}", word(ty)))
                .label(format!("is {}", word(ty)))
                .help(help),
        );
    }

    fn misfit(
        &mut self,
        name: &str,
        ty: Type,
        kinds: Kinds,
        at: crate::source::Span,
        help: Option<&str>,
    ) {
        let finding = Diagnostic::new(Code::BadLiteral, at)
            .message(format!(
                "`{name}` is declared as {}, and this is {}",
                word(ty),
                kinds.noun()
            ))
            .label(format!("not {}", word(ty)));
        self.checker.report(match help {
            Some(help) => finding.help(help),
            None => finding,
        });
    }

    /// An output with a type, made by an expression.
    pub(super) fn typed_output(&mut self, output: &'d Output<'d>, scope: &Scope<'d>) {
        if is_literal(output.value, scope.dialect) {
            return;
        }
        let kinds = self.kinds(output.value, scope);
        // A text is read as the type, and what is no text is written as one.
        let readable = Kinds::of(output.ty) | Kinds::TEXT | Kinds::SECRET | Kinds::NULL;
        let taken = match output.ty {
            Type::String => readable | Kinds::NUMBER | Kinds::BOOLEAN,
            Type::Any
            | Type::Number
            | Type::Integer
            | Type::Boolean
            | Type::Array
            | Type::Object => readable,
        };
        if !kinds.may_be(taken) {
            let at = self.checker.line(output.value.span);
            self.misfit(&output.name.value, output.ty, kinds, at, None);
        }
    }

    /// `items` that is known not to be a list.
    pub(super) fn known_list(&mut self, items: &'d Tree, scope: &Scope<'d>) {
        let kinds = match items.as_str() {
            Some(text) => match expression::form(text, scope.dialect) {
                TextForm::Sole(range) => self.expression_kinds(&text[range], scope),
                TextForm::Literal => self.expression_kinds(text, scope),
                TextForm::Text => return,
            },
            None => self.kinds(items, scope),
        };
        if kinds.may_be(Kinds::LIST) {
            return;
        }
        let noun = kinds.noun();
        self.checker.report(
            Diagnostic::new(Code::NotAList, self.checker.line(items.span))
                .message(format!("`foreach` runs over a list, and this is {noun}"))
                .label(format!("this is {noun}"))
                .help("give a list, or an expression that yields one"),
        );
    }

    /// Inputs that are given to another workflow and made by expressions.
    pub(super) fn given(
        &mut self,
        workflow: &'d Tree,
        inputs: &[(Spanned<String>, &'d Tree)],
        scope: &Scope<'d>,
    ) {
        let Some(name) = self.checker.called_by(workflow, scope.dialect) else {
            return;
        };
        let Some(declared) = self.checker.inputs_of(name) else {
            return;
        };
        for (input, tree) in inputs {
            let mut fields = declared.iter();
            let Some(field) = fields.find(|field| field.name == *input.value) else {
                continue;
            };
            let kinds = self.kinds(tree, scope);
            if is_literal(tree, scope.dialect) || fits_input(kinds, field) {
                continue;
            }
            let said = format!("must be {}, and is {}", word(field.ty), kinds.noun());
            let at = self.checker.line(tree.span);
            self.checker.report(
                Diagnostic::new(Code::BadCallInput, at)
                    .message(format!("input `{}` of `{name}` {said}", input.value))
                    .label(said),
            );
        }
    }
}

/// Whether a name alone reads an input, or may.
fn is_input(name: &str, scope: &Scope<'_>) -> bool {
    let inputs = scope.inputs.as_ref();
    scope.dialect == Dialect::Js && inputs.is_none_or(|inputs| inputs.contains(&name))
}

/// Whether a value can be written to a field of a type.
fn fits_field(kinds: Kinds, ty: Type) -> bool {
    let taken = match ty {
        Type::String => Kinds::TEXT | Kinds::SECRET,
        other => Kinds::of(other),
    };
    kinds.may_be(taken | Kinds::NULL)
}

/// Whether a value can be given for an input. A text is not read as another type there; what
/// stands for a secret is looked at where it is known.
fn fits_input(kinds: Kinds, field: &graph::Field) -> bool {
    let must_be_given = field.required && field.default.is_none();
    let absent = match must_be_given {
        true => Kinds::SECRET,
        false => Kinds::SECRET | Kinds::NULL,
    };
    field.secret || kinds.may_be(Kinds::of(field.ty) | absent)
}

/// The way to the part of a result that somebody may have meant.
fn result_help(act: &Act<'_>) -> Option<&'static str> {
    use crate::graph::PromptKind;
    match act {
        Act::Prompt { kind, .. } => Some(match kind {
            PromptKind::Text => {
                "the result is `{input}`; `state_update` with `value: \"{{ input }}\"` writes the text"
            }
            PromptKind::Choice => {
                "the result is `{selected}`; `state_update` with `value: \"{{ selected }}\"` writes the choice"
            }
            PromptKind::Confirm => {
                "the result is `{confirmed}`; `state_update` with `value: \"{{ confirmed }}\"` writes yes or no"
            }
            PromptKind::Info => "the result is `{acknowledged}`",
        }),
        Act::Shell {
            output: OutputFormat::Result,
            ..
        } => Some("say `output_format`: `text` for standard output, `json` for what it holds"),
        Act::Delegate { .. } => Some(
            "the result is `{response, agent_used}`; `state_update` with `value: \"{{ response }}\"` writes the answer",
        ),
        _ => None,
    }
}
