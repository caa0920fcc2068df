//! Literals against declarations, and rules against types.

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Field, Validation};
use crate::expression::{self, Dialect, Form as TextForm};
use crate::graph::Type;
use crate::lower;
use crate::source::{Span, Tree, Value};
use crate::structure::number;
use crate::suggest;
use crate::value::{self, FaultKind, InputFault, word};

impl<'d> Checker<'d> {
    /// Typed fields: their defaults and rules.
    pub(super) fn fields(&mut self, fields: &'d [Field<'d>]) {
        for field in fields {
            self.validation(&field.validation, field.ty);
            let Some(default) = field.default else {
                continue;
            };
            for (fault, at) in misfits(default, field) {
                let (path, said) = (&fault.path, fault.predicate());
                let message = match fault.kind {
                    FaultKind::Unknown => format!("the default has `{path}`, which{said}"),
                    FaultKind::Missing | FaultKind::WrongType | FaultKind::Invalid => {
                        format!("the default of `{path}`{said}")
                    }
                };
                self.report(
                    Diagnostic::new(Code::BadLiteral, self.line(at))
                        .message(message)
                        .label(said.trim_start_matches([':', ' ']))
                        .related(field.ty_span, format!("declared as {}", word(field.ty))),
                );
            }
        }
    }

    /// Rules that belong to the type, and that a value can satisfy.
    pub(super) fn validation(&mut self, validation: &'d Validation<'d>, ty: Type) {
        for (name, span, tree) in &validation.rules {
            if !applies(name, ty) {
                self.report(
                    Diagnostic::new(Code::BadValidation, *span)
                        .message(format!("`{name}` is no rule for {}", word(ty)))
                        .help(format!("rules for {} are {}", word(ty), rules_for(ty))),
                );
                continue;
            }
            if *name == "pattern" {
                self.regex(tree);
            }
            if *name == "enum" {
                for item in tree.items().unwrap_or_default() {
                    if !has_type(item, ty) {
                        self.report(
                            Diagnostic::new(Code::BadLiteral, self.line(item.span))
                                .message(format!(
                                    "a value under `enum` is {}, not {}",
                                    item.noun(),
                                    word(ty)
                                ))
                                .label(format!("not {}", word(ty))),
                        );
                    }
                }
            }
        }
        for (low, high) in [
            ("min", "max"),
            ("min_length", "max_length"),
            ("min_items", "max_items"),
        ] {
            let find = |name: &str| validation.rules.iter().find(|(rule, ..)| *rule == name);
            if let (Some((_, _, low_tree)), Some((_, _, high_tree))) = (find(low), find(high))
                && let (Some(least), Some(most)) = (number(low_tree), number(high_tree))
                && least > most
            {
                self.report(
                    Diagnostic::new(Code::BadValidation, high_tree.span)
                        .message(format!("no value has `{low}` {least} and `{high}` {most}"))
                        .related(low_tree.span, format!("`{low}` is greater"))
                        .help("exchange the two"),
                );
            }
        }
        self.fields(&validation.properties);
    }

    /// A literal that is written to something with a declared type.
    pub(super) fn literal_fits(&mut self, tree: &'d Tree, ty: Type, dialect: Dialect, name: &str) {
        if is_literal(tree, dialect) && tree.value != Value::Null && !has_type(tree, ty) {
            self.report(
                Diagnostic::new(Code::BadLiteral, self.line(tree.span))
                    .message(format!(
                        "`{name}` is declared as {}, and this is {}",
                        word(ty),
                        tree.noun()
                    ))
                    .label(format!("not {}", word(ty))),
            );
        }
    }
}

/// Whether a value holds no template.
pub(super) fn is_literal(tree: &Tree, dialect: Dialect) -> bool {
    match &tree.value {
        Value::Str(scalar) => expression::form(&scalar.text, dialect) == TextForm::Literal,
        Value::List(items) => items.iter().all(|item| is_literal(item, dialect)),
        Value::Map(entries) => entries
            .iter()
            .all(|entry| is_literal(&entry.value, dialect)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => true,
    }
}

fn has_type(tree: &Tree, ty: Type) -> bool {
    match &tree.value {
        Value::List(_) => matches!(ty, Type::Array | Type::Any),
        Value::Map(_) => matches!(ty, Type::Object | Type::Any),
        _ => value::has_type(&tree.to_json(), ty),
    }
}

/// Why a literal does not fit a field, by the rules that hold for values from outside, and where.
fn misfits(tree: &Tree, field: &Field<'_>) -> Vec<(InputFault, Span)> {
    let mut faults = Vec::new();
    if tree.value != Value::Null {
        let declared = lower::field(field);
        value::check(&declared.name, &declared, &tree.to_json(), &mut faults);
    }
    let at = |fault: &InputFault| {
        let below = fault.path.get(field.name.value.len()..);
        descend(tree, below.unwrap_or_default()).span
    };
    let place = |fault| {
        let span = at(&fault);
        (fault, span)
    };
    faults.into_iter().map(place).collect()
}

/// The value at a path such as `.server.ports[0]`, as far as it goes.
fn descend<'t>(tree: &'t Tree, path: &str) -> &'t Tree {
    let next = match path.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((index, rest)) => {
            let index = index.parse::<usize>().ok();
            let item = index.and_then(|index| tree.items()?.get(index));
            item.map(|item| (item, rest))
        }
        None => path.strip_prefix('.').and_then(|path| {
            // A name may have dots of its own.
            tree.entries()?.iter().find_map(|entry| {
                let rest = path.strip_prefix(entry.key.value.as_str())?;
                let whole = rest.is_empty() || rest.starts_with(['.', '[']);
                whole.then_some((&entry.value, rest))
            })
        }),
    };
    match next {
        Some((tree, rest)) => descend(tree, rest),
        None => tree,
    }
}

/// Rules by the types they apply to.
fn applies(rule: &str, ty: Type) -> bool {
    match rule {
        "pattern" | "min_length" | "max_length" => matches!(ty, Type::String | Type::Any),
        "min" | "max" => matches!(ty, Type::Number | Type::Integer | Type::Any),
        "min_items" | "max_items" | "item_type" => matches!(ty, Type::Array | Type::Any),
        "required_keys" | "properties" => matches!(ty, Type::Object | Type::Any),
        _ => true,
    }
}

fn rules_for(ty: Type) -> String {
    let all = [
        "pattern",
        "min_length",
        "max_length",
        "min",
        "max",
        "min_items",
        "max_items",
        "item_type",
        "required_keys",
        "properties",
        "enum",
        "error_message",
    ];
    let fitting: Vec<String> = all
        .into_iter()
        .filter(|rule| applies(rule, ty))
        .map(|rule| format!("`{rule}`"))
        .collect();
    fitting.join(", ")
}

/// Faults of arguments against declared fields, of their values where those are literals.
pub(super) fn arguments<'a>(
    given: impl Iterator<Item = (&'a str, Span, &'a Tree)>,
    declared: &'a [Field<'_>],
    is_literal: impl Fn(&Tree) -> bool,
) -> Vec<ArgumentFault> {
    let mut faults = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (name, span, tree) in given {
        seen.push(name);
        match declared.iter().find(|field| field.name.value == *name) {
            None => {
                // A misspelt argument is not missing as well.
                let names = declared.iter().map(|field| field.name.value.as_str());
                seen.extend(suggest::nearest(name, names));
                faults.push(ArgumentFault::Unknown(name.to_owned(), span));
            }
            // Nothing is as good as not given.
            Some(field) if tree.value == Value::Null && field.must_be_given() && !field.secret => {
                faults.push(ArgumentFault::Misfit(
                    InputFault {
                        path: name.to_owned(),
                        kind: FaultKind::Missing,
                        message: format!("`{name}` must be given ({})", word(field.ty)),
                    },
                    tree.span,
                ));
            }
            Some(field) if is_literal(tree) => {
                let found = misfits(tree, field).into_iter();
                faults.extend(found.map(|(fault, at)| ArgumentFault::Misfit(fault, at)));
            }
            Some(_) => {}
        }
    }
    for field in declared {
        let name = &field.name.value;
        if field.must_be_given() && !seen.contains(&name.as_str()) {
            faults.push(ArgumentFault::Missing(name.clone()));
        }
    }
    faults
}

/// A fault of an argument.
pub(super) enum ArgumentFault {
    /// Not declared.
    Unknown(String, Span),
    /// Does not fit.
    Misfit(InputFault, Span),
    /// Must be given.
    Missing(String),
}
