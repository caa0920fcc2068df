//! What the names in an expression mean where it stands.

use std::ops::Range;

use super::{Pass, Reads};
use crate::check::scope::{FieldRead, Place, Scope};
use crate::check::values::is_literal;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Act, Field, all_steps};
use crate::expression::{self, Dialect, Read};
use crate::source::{Span, Value};

impl<'d> Pass<'_, 'd> {
    /// A `{name}` or bare name that may be an input or a variable of the run.
    pub(super) fn variable(&mut self, name: &str, scope: &Scope<'d>) {
        if scope
            .inputs
            .as_ref()
            .is_some_and(|inputs| inputs.contains(&name))
        {
            self.checker.uses.input(scope.unit, name);
        }
        if self.space(scope).fields.contains_key(name) {
            self.checker.uses.field(scope.space, name);
        }
    }

    pub(super) fn read(&mut self, read: &Read, at: ReadAt, scope: &Scope<'d>, reads: &mut Reads) {
        let Some(root) = read.path.first() else {
            return;
        };
        let ReadAt {
            whole: at,
            root: root_at,
            key: key_at,
        } = at;
        let key = read.path.get(1).map(String::as_str);
        match root.as_str() {
            "inputs" => {
                self.input(key, key_at, read.optional, scope);
                self.secret(read, at, scope);
            }
            "state" | "this" | "raw" | "computed" if !scope.state => self.checker.report(
                Diagnostic::new(Code::UnknownName, root_at)
                    .message(format!(
                        "`{root}` does not exist yet where the state begins"
                    ))
                    .help("initial values are made from `inputs`, `now()` and `uuid()`"),
            ),
            "state" | "this" => self.fields(key, None, read, (at, key_at), scope, reads),
            "raw" => self.fields(key, Some(Place::Raw), read, (at, key_at), scope, reads),
            "computed" => {
                let place = Some(Place::Computed);
                self.fields(key, place, read, (at, key_at), scope, reads);
            }
            "item" if scope.item => {}
            "item" => self.checker.report(
                Diagnostic::new(Code::UnknownName, at)
                    .message("`item` means nothing outside a loop")
                    .label("no loop around this")
                    .help("`item` is the current one of `foreach`, in its steps or its task"),
            ),
            "loop" if scope.looped => self.member("loop", key, LOOP, key_at),
            "loop" => self.checker.report(
                Diagnostic::new(Code::UnknownName, at)
                    .message("`loop` means nothing outside a loop")
                    .label("no loop around this")
                    .help("`loop` counts the rounds of `while` and `foreach`, in their steps"),
            ),
            "run" => self.member("run", key, RUN, key_at),
            "env" => self.environment(key, key_at),
            "error" if scope.error => self.member("error", key, ERROR, key_at),
            "result" if scope.result => {}
            name if scope.local.contains(&name) => self.checker.uses.field(scope.space, name),
            name if scope.state && self.space(scope).fields.contains_key(name) => {
                if self.checker.document.dialect == Dialect::Js && is_input(name, scope) {
                    self.variable(name, scope);
                    return self.shadowed(name, root_at);
                }
                let key = Some(root.as_str());
                self.fields(key, None, read, (at, root_at), scope, reads);
            }
            "workflow_id" => self.variable(root, scope),
            // One whose being undefined is handled may be anything.
            name if scope.dialect == Dialect::Js && read.optional => self.variable(name, scope),
            name => self.bare(name, root_at, scope),
        }
    }

    /// A bare name that is an input as well as a state field.
    fn shadowed(&mut self, name: &str, at: Span) {
        self.checker.report(
            Diagnostic::new(Code::ShadowedTier, at)
                .message(format!(
                    "`{name}` is an input and a state field: alone it reads the input"
                ))
                .help(format!("write `inputs.{name}` or `state.{name}`")),
        );
    }

    /// Whether something that can be seen gives a bare name a value.
    pub(super) fn is_variable(&self, name: &str, scope: &Scope<'d>) -> bool {
        let input = scope.inputs.as_ref();
        ROOTS.contains(&name)
            || name == "this"
            || (scope.item && LOOPED.contains(&name))
            || (scope.looped && name == "loop")
            || (scope.error && name == "error")
            || (scope.result && name == "result")
            || scope.local.contains(&name)
            || input.is_some_and(|inputs| inputs.contains(&name))
            || self.space(scope).fields.contains_key(name)
            || self.checker.lost.mentions(name)
    }

    /// A name after `|` that is no variable. In JavaScript it would count as zero.
    pub(super) fn no_filter(&mut self, name: &str, at: Span, scope: &Scope<'d>) {
        let known = expression::vocabulary::FILTERS.iter().copied();
        let finding = Diagnostic::new(Code::UnknownFilter, at)
            .message(format!(
                "there is no filter `{name}`, and no variable either"
            ))
            .label("neither a filter nor a variable");
        let mut finding = self.checker.suggest(finding, name, known);
        // Where any name may be a variable of the run, only a near miss tells.
        if finding.suggestion.is_none() {
            if scope.open || self.space(scope).open {
                return self.bare(name, at, scope);
            }
            finding = finding.help("after `|` comes a filter, or a value whose bits are joined");
        }
        self.checker.report(finding);
    }

    /// Whether a step is called so.
    fn is_step(&self, name: &str, scope: &Scope<'d>) -> bool {
        let document = self.checker.document;
        let steps = match scope.unit {
            0 => &document.steps,
            unit => &document.tasks[unit - 1].steps,
        };
        all_steps(steps).iter().any(|step| step.id.value == name)
    }

    fn bare(&mut self, name: &str, at: Span, scope: &Scope<'d>) {
        self.variable(name, scope);
        if scope.open || self.checker.lost.mentions(name) {
            return;
        }
        if scope.dialect == Dialect::Js {
            return self.undefined(name, at, scope);
        }
        let looped = if scope.item { LOOPED } else { &[] };
        let fields = self.space(scope).fields.keys().chain(&scope.local);
        let known = ROOTS.iter().chain(looped).chain(fields).copied();
        let finding = Diagnostic::new(Code::UnknownName, at)
            .message(format!("`{name}` means nothing here"))
            .label("unknown name");
        let mut finding = self.checker.suggest(finding, name, known);
        if scope
            .inputs
            .as_ref()
            .is_some_and(|inputs| inputs.contains(&name))
        {
            finding = finding.help(format!("inputs are read as `inputs.{name}`"));
            finding.suggestion = Some(format!("inputs.{name}"));
        } else if finding.suggestion.is_none() {
            finding = finding.help(match name {
                "error" => "`error` exists in failure steps and `error_state_update`",
                "result" => "`result` exists in `state_update`",
                "steps" | "outputs" | "needs" | "jobs" => {
                    "a step's result is read where its `output_to` puts it: `state.NAME`"
                }
                _ if self.is_step(name, scope) => {
                    "a step's result is read where its `output_to` puts it: `state.NAME`"
                }
                _ => "values come from `inputs`, `state`, `item`, `loop`, `env` and `run`",
            });
        }
        self.checker.report_in_path(finding, name, false);
    }

    /// A bare name that JavaScript reads as undefined, for ever.
    fn undefined(&mut self, name: &str, at: Span, scope: &Scope<'d>) {
        let Some(inputs) = &scope.inputs else {
            return;
        };
        let vocabulary = expression::vocabulary::JS_GLOBALS.iter();
        let mut known = vocabulary.chain(expression::vocabulary::JS_FUNCTIONS);
        if inputs.contains(&name) || self.space(scope).open || known.any(|known| *known == name) {
            return;
        }
        let looped = if scope.item { LOOPED } else { &[] };
        let fields = self.space(scope).fields.keys().chain(&scope.local);
        let known = fields.chain(inputs).chain(ROOTS).chain(looped).copied();
        let finding = Diagnostic::new(Code::UndefinedName, at)
            .message(format!("nothing here is called `{name}`: it is undefined"))
            .label("undefined");
        let mut finding = self.checker.suggest(finding, name, known);
        if finding.suggestion.is_none() {
            finding = finding.help(format!(
                "declare `{name}` under `state` or `inputs`; `{name} ?? …` says that it may be undefined"
            ));
        }
        self.checker.report_in_path(finding, name, false);
    }

    /// A secret that is looked at: an expression has only what stands for it.
    fn secret(&mut self, read: &Read, at: Span, scope: &Scope<'d>) {
        let Some(name) = read.path.get(1) else {
            return;
        };
        let fields = self.declared_inputs(scope);
        let is_secret = |field: &Field<'_>| field.secret && field.name.value == *name;
        let looked_at = read.examined || read.path.len() > 2;
        if looked_at && fields.unwrap_or_default().iter().any(is_secret) {
            self.looked_at(name, None, at);
        }
    }

    /// The same of a field that holds a secret.
    fn secret_field(
        &mut self,
        name: &str,
        place: Option<Place>,
        read: &Read,
        at: Span,
        scope: &Scope<'d>,
    ) {
        let space = self.space(scope);
        let found = place.or_else(|| space.fields.get(name)?.first().copied());
        let below = read.path.last().is_some_and(|last| last != name);
        let Some(secret) = space.secrets.get(name) else {
            return;
        };
        if (read.examined || below) && found != Some(Place::Computed) {
            let secret = (*secret).to_owned();
            self.looked_at(&secret, Some(name), at);
        }
    }

    fn looked_at(&mut self, secret: &str, field: Option<&str>, at: Span) {
        let through = match field {
            Some(field) => format!(", which `{field}` holds"),
            None => String::new(),
        };
        self.checker.report(
            Diagnostic::new(Code::SecretExamined, at)
                .message(format!(
                    "an expression never sees the secret `{secret}`{through}"
                ))
                .label("compared, measured or changed here")
                .help("pass it on as it is, and let a command or a tool look at it"),
        );
    }

    fn input(&mut self, key: Option<&str>, at: Span, optional: bool, scope: &Scope<'d>) {
        let Some(name) = key else {
            self.checker.uses.all_inputs.insert(scope.unit);
            return;
        };
        self.checker.uses.input(scope.unit, name);
        let Some(declared) = &scope.inputs else {
            if !optional && self.is_unbound(name, scope) {
                self.unbound(name, at);
            }
            return;
        };
        if declared.contains(&name) || self.checker.lost.mentions(name) {
            return;
        }
        let finding = Diagnostic::new(Code::UnknownInput, at)
            .message(format!("there is no input `{name}`"))
            .label("not declared under `inputs`");
        let known = declared.iter().copied();
        let mut finding = self.checker.suggest(finding, name, known);
        match &finding.suggestion {
            Some(near) => {
                let near = near.clone();
                self.checker.uses.input(scope.unit, &near);
            }
            None => finding = finding.help("declare it under `inputs`"),
        }
        self.checker.report_in_path(finding, name, true);
    }

    /// Whether some item of a task that declares no inputs is known not to have this one.
    fn is_unbound(&self, name: &str, scope: &Scope<'d>) -> bool {
        let document = self.checker.document;
        let Some(task) = scope
            .unit
            .checked_sub(1)
            .and_then(|at| document.tasks.get(at))
        else {
            return false;
        };
        let main = [&document.steps, &document.on_error.steps];
        let tasks = document.tasks.iter();
        let lists = main
            .into_iter()
            .chain(tasks.flat_map(|task| [&task.steps, &task.cleanup]));
        let mut items = lists
            .flat_map(|steps| all_steps(steps))
            .filter_map(|step| match &step.act {
                // An agent that is handed the whole item runs no step.
                Act::FanOut {
                    items,
                    task: named,
                    agent,
                    ..
                } if named.value == task.name.value
                    && agent.as_ref().is_none_or(|agent| agent.value == "@task") =>
                {
                    items.items()
                }
                _ => None,
            })
            .flatten();
        items.any(|item| match &item.value {
            Value::Map(entries) => entries.iter().all(|entry| entry.key.value != *name),
            Value::Str(_) => is_literal(item, scope.dialect) && name != "item",
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) => {
                name != "item"
            }
        })
    }

    fn unbound(&mut self, name: &str, at: Span) {
        let document = self.checker.document;
        let mut inputs = document.inputs.as_deref().unwrap_or_default().iter();
        let is_outside = inputs.any(|field| field.name.value == name);
        let finding = Diagnostic::new(Code::UnknownInput, at)
            .message(format!(
                "the inputs of a task are its items, and one of them has no `{name}`"
            ))
            .label("not among the task's inputs");
        let help = match is_outside {
            true => format!(
                "the workflow's inputs are not the task's: write `{name}: \"{{{{ inputs.{name} }}}}\"` in every item"
            ),
            false => format!("give every item `{name}`, or read `item`"),
        };
        self.checker.uses.input(0, name);
        self.checker.report(finding.help(help));
    }

    fn fields(
        &mut self,
        key: Option<&str>,
        place: Option<Place>,
        read: &Read,
        (at, key_at): (Span, Span),
        scope: &Scope<'d>,
        reads: &mut Reads,
    ) {
        let Some(name) = key else {
            self.checker.uses.all_state.insert(scope.space);
            return;
        };
        self.checker.uses.field(scope.space, name);
        if scope.written && scope.local.contains(&name) {
            return;
        }
        reads.push(FieldRead {
            field: name.to_owned(),
            span: at,
            optional: read.optional,
        });
        let known = match place {
            None => self.space(scope).has(name),
            Some(place) => self.space(scope).has_in(name, place),
        };
        if !known {
            match place {
                Some(place) if self.space(scope).has(name) => {
                    self.other_tier(name, place, at, scope);
                }
                _ => self.unknown_field(name, key_at, scope),
            }
            return;
        }
        self.secret_field(name, place, read, at, scope);
        let Some(needs) = scope.needs.filter(|_| !scope.local.contains(&name)) else {
            return;
        };
        if !needs.iter().any(|needed| needed.value == name) {
            self.checker.report(
                Diagnostic::new(Code::OutsideNeedsState, at)
                    .message(format!(
                        "this step may not read `{name}`: `needs_state` does not list it"
                    ))
                    .label("outside `needs_state`")
                    .help(format!("add `{name}` to `needs_state`")),
            );
        }
    }

    /// A field that exists, in another tier than the one named.
    fn other_tier(&mut self, name: &str, place: Place, at: Span, scope: &Scope<'d>) {
        let tiers = self.space(scope).fields.get(name).cloned();
        let found = tiers.unwrap_or_default().into_iter().next();
        let tier = found.map_or("state", Place::word);
        let mut finding = Diagnostic::new(Code::UnknownState, at)
            .message(format!(
                "`{name}` is not in {}, but in {tier}",
                place.word()
            ))
            .label("another tier")
            .help(format!("read it as `state.{name}`"));
        finding.suggestion = Some(format!("state.{name}"));
        self.checker.report(finding);
    }

    pub(super) fn unknown_field(&mut self, name: &str, at: Span, scope: &Scope<'d>) {
        if self.checker.lost.may_declare(name) {
            return;
        }
        let finding = Diagnostic::new(Code::UnknownState, at)
            .message(format!("there is no state field `{name}`"))
            .label("nothing declares or writes it");
        let known = self.space(scope).fields.keys().copied();
        let mut finding = self.checker.suggest(finding, name, known);
        match &finding.suggestion {
            Some(near) => {
                let near = near.clone();
                self.checker.uses.field(scope.space, &near);
            }
            None if scope.space > 0 && self.spaces[0].has(name) => {
                finding = finding
                    .label("the workflow has it, this task has not")
                    .help("pass it to the task as an input, or say `shares_state: true` there");
            }
            None => {
                finding = finding.help("declare it under `state`, or write it with `output_to`")
            }
        }
        self.checker.report_in_path(finding, name, true);
    }

    fn member(&mut self, root: &str, key: Option<&str>, known: &[&str], at: Span) {
        if let Some(key) = key
            && !known.contains(&key)
        {
            let mut finding = Diagnostic::new(Code::UnknownName, at)
                .message(format!("`{root}` has no `{key}`"))
                .suggest(key, known.iter().copied());
            if finding.suggestion.is_none() {
                finding = finding.help(format!("it has `{}`", known.join("`, `")));
            }
            self.checker.report_in_path(finding, key, true);
        }
    }

    fn environment(&mut self, key: Option<&str>, at: Span) {
        let document = self.checker.document;
        let Some(key) = key else {
            return;
        };
        let known = || document.arguments.iter().map(|v| v.name.value.as_str());
        if known().any(|name| name == key) || self.checker.lost.mentions(key) {
            return;
        }
        let mut finding = Diagnostic::new(Code::UnknownName, at)
            .message(format!(
                "`env` has no `{key}`: it is not declared under `arguments`"
            ))
            .suggest(key, known());
        if finding.suggestion.is_none() {
            finding = finding.help(format!(
                "declare it under `arguments`; in a command `${key}` is the shell's own"
            ));
        }
        self.checker.report_in_path(finding, key, true);
    }
}

const ROOTS: &[&str] = &[
    "inputs",
    "state",
    "run",
    "env",
    "raw",
    "computed",
    "workflow_id",
];
const LOOPED: &[&str] = &["item", "loop"];
const LOOP: &[&str] = &["index", "iteration", "first", "last", "length"];
const ERROR: &[&str] = &["message", "type", "step"];
const RUN: &[&str] = &["id", "workflow", "started_at"];

fn is_input(name: &str, scope: &Scope<'_>) -> bool {
    let inputs = scope.inputs.as_ref();
    inputs.is_some_and(|inputs| inputs.contains(&name))
}

/// Where a read stands, with its first and its second name.
#[derive(Clone, Copy)]
pub(super) struct ReadAt {
    pub(super) whole: Span,
    pub(super) root: Span,
    pub(super) key: Span,
}

/// The ranges of the first and the second name of a read.
pub(in crate::check) fn segments(text: &str, read: &Read) -> [Range<usize>; 2] {
    let whole = || read.range.clone();
    let written = text.get(whole()).unwrap_or_default();
    let part = |name: Option<&String>, after: usize| {
        let name = name?;
        let at = after + written.get(after..)?.find(name.as_str())?;
        Some(at..at + name.len())
    };
    let root = part(read.path.first(), 0);
    let key = part(read.path.get(1), root.as_ref().map_or(0, |root| root.end));
    [root, key].map(|found| match found {
        Some(range) => read.range.start + range.start..read.range.start + range.end,
        None => whole(),
    })
}
