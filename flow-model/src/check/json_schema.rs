//! A JSON Schema that a definition brings along: whether it is one.
//!
//! The rules are those of the 2020-12 meta-schema. A schema that names another draft with
//! `$schema` is taken as it is.

use regex_syntax::ast::ErrorKind;
use regex_syntax::ast::parse::Parser;

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{Entry, Span, Tree, Value};

/// What the value of a keyword must be.
#[derive(Clone, Copy)]
enum Kind {
    /// A schema.
    Schema,
    /// A list of at least one schema.
    Schemas,
    /// A map of names to schemas.
    Named,
    /// A map of regular expressions to schemas.
    NamedByPattern,
    /// The names of types.
    Types,
    /// A list of different texts.
    Names,
    /// A map of names to lists of different texts.
    NamesByName,
    /// A whole number from 0.
    Count,
    /// A number.
    Number,
    /// A number above 0.
    Positive,
    /// A text.
    Text,
    /// A regular expression.
    Pattern,
    /// A place in the schema.
    Reference,
    /// `true` or `false`.
    Flag,
    /// A list.
    List,
    /// Anything.
    Any,
}

const KEYWORDS: &[(&str, Kind)] = &[
    ("$anchor", Kind::Text),
    ("$comment", Kind::Text),
    ("$defs", Kind::Named),
    ("$dynamicAnchor", Kind::Text),
    ("$dynamicRef", Kind::Text),
    ("$id", Kind::Text),
    ("$ref", Kind::Reference),
    ("$schema", Kind::Text),
    ("additionalProperties", Kind::Schema),
    ("allOf", Kind::Schemas),
    ("anyOf", Kind::Schemas),
    ("const", Kind::Any),
    ("contains", Kind::Schema),
    ("contentEncoding", Kind::Text),
    ("contentMediaType", Kind::Text),
    ("contentSchema", Kind::Schema),
    ("default", Kind::Any),
    ("definitions", Kind::Named),
    ("dependentRequired", Kind::NamesByName),
    ("dependentSchemas", Kind::Named),
    ("deprecated", Kind::Flag),
    ("description", Kind::Text),
    ("else", Kind::Schema),
    ("enum", Kind::List),
    ("examples", Kind::List),
    ("exclusiveMaximum", Kind::Number),
    ("exclusiveMinimum", Kind::Number),
    ("format", Kind::Text),
    ("if", Kind::Schema),
    ("items", Kind::Schema),
    ("maxContains", Kind::Count),
    ("maxItems", Kind::Count),
    ("maxLength", Kind::Count),
    ("maxProperties", Kind::Count),
    ("maximum", Kind::Number),
    ("minContains", Kind::Count),
    ("minItems", Kind::Count),
    ("minLength", Kind::Count),
    ("minProperties", Kind::Count),
    ("minimum", Kind::Number),
    ("multipleOf", Kind::Positive),
    ("not", Kind::Schema),
    ("oneOf", Kind::Schemas),
    ("pattern", Kind::Pattern),
    ("patternProperties", Kind::NamedByPattern),
    ("prefixItems", Kind::Schemas),
    ("properties", Kind::Named),
    ("propertyNames", Kind::Schema),
    ("readOnly", Kind::Flag),
    ("required", Kind::Names),
    ("then", Kind::Schema),
    ("title", Kind::Text),
    ("type", Kind::Types),
    ("unevaluatedItems", Kind::Schema),
    ("unevaluatedProperties", Kind::Schema),
    ("uniqueItems", Kind::Flag),
    ("writeOnly", Kind::Flag),
];

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// The draft whose rules these are.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

impl<'d> Checker<'d> {
    /// A schema under a key of a step.
    pub(super) fn json_schema(&mut self, root: &'d Tree, key: &str) {
        let draft = root.get("$schema").and_then(Tree::as_str);
        if draft.is_some_and(|draft| draft.trim_end_matches('#') != DRAFT) {
            return;
        }
        let mut faults = Vec::new();
        Schema {
            root,
            faults: &mut faults,
        }
        .schema(root, key);
        for (span, message, near) in faults {
            let mut finding =
                Diagnostic::new(Code::BadValidation, self.line(span)).message(message);
            finding = match near {
                Some(wrong) => finding.suggest(wrong, TYPES),
                None => finding,
            };
            if finding.suggestion.is_none() {
                finding = finding.help(format!("`{key}` is a JSON Schema, of draft 2020-12"));
            }
            self.report(finding);
        }
        // A shorthand that a schema does not have leaves everything allowed.
        if let Some([first, ..]) = root.entries()
            && let Some(entries) = root.entries()
            && !entries.iter().any(|entry| keyword(entry).is_some())
        {
            self.report(
                Diagnostic::new(Code::NoEffect, first.key.span)
                    .message(format!(
                        "`{key}` has no keyword of JSON Schema, so that every answer satisfies it"
                    ))
                    .label("not a keyword")
                    .help("write `{type: object, properties: {…}, required: […]}`"),
            );
        }
    }
}

fn keyword(entry: &Entry) -> Option<Kind> {
    let name = entry.key.value.as_str();
    let known = KEYWORDS.binary_search_by_key(&name, |(keyword, _)| keyword);
    known.ok().map(|at| KEYWORDS[at].1)
}

/// What is wrong, where, and the word that is no type.
type Fault<'d> = (Span, String, Option<&'d str>);

struct Schema<'d, 'f> {
    root: &'d Tree,
    faults: &'f mut Vec<Fault<'d>>,
}

impl<'d> Schema<'d, '_> {
    fn fault(&mut self, tree: &'d Tree, what: &str, wanted: &str) {
        let message = format!("`{what}` must be {wanted}, and is {}", tree.noun());
        self.faults.push((tree.span, message, None));
    }

    fn schema(&mut self, tree: &'d Tree, what: &str) {
        match &tree.value {
            Value::Bool(_) => {}
            Value::Map(entries) => {
                for entry in entries {
                    if let Some(kind) = keyword(entry) {
                        self.value(&entry.value, kind, &entry.key.value);
                    }
                }
            }
            _ => self.fault(tree, what, "a schema: a map, `true` or `false`"),
        }
    }

    fn value(&mut self, tree: &'d Tree, kind: Kind, what: &str) {
        match (kind, &tree.value) {
            (Kind::Any, _)
            | (Kind::Text | Kind::Pattern | Kind::Reference, Value::Str(_))
            | (Kind::Flag, Value::Bool(_))
            | (Kind::Number, Value::Int(_) | Value::Float(_))
            | (Kind::List, Value::List(_)) => {}
            (Kind::Count, Value::Int(count)) if *count >= 0 => {}
            (Kind::Count, Value::Float(count)) if *count >= 0.0 && count.fract() == 0.0 => {}
            (Kind::Positive, Value::Int(number)) if *number > 0 => {}
            (Kind::Positive, Value::Float(number)) if *number > 0.0 => {}
            (Kind::Schema, _) => self.schema(tree, what),
            (Kind::Schemas, Value::List(items)) if !items.is_empty() => {
                for item in items {
                    self.schema(item, what);
                }
            }
            (Kind::Named | Kind::NamedByPattern, Value::Map(entries)) => {
                for entry in entries {
                    if let Kind::NamedByPattern = kind {
                        self.pattern(&entry.key.value, entry.key.span);
                    }
                    self.schema(&entry.value, &entry.key.value);
                }
            }
            (Kind::Types, Value::Str(_)) => self.type_name(tree),
            (Kind::Types, Value::List(items)) if !items.is_empty() => {
                items.iter().for_each(|item| self.type_name(item));
                self.different(items, what);
            }
            (Kind::Names, Value::List(items)) => self.names(items, what),
            (Kind::NamesByName, Value::Map(entries)) => {
                for entry in entries {
                    self.value(&entry.value, Kind::Names, &entry.key.value);
                }
            }
            (kind, _) => self.fault(tree, what, wanted(kind)),
        }
        if let (Kind::Reference, Some(to)) = (kind, tree.as_str())
            && !self.leads_somewhere(to)
        {
            let message = format!("`{what}` leads to `{to}`, and there is nothing in this schema");
            self.faults.push((tree.span, message, None));
        }
        if let (Kind::Pattern, Some(pattern)) = (kind, tree.as_str()) {
            self.pattern(pattern, tree.span);
        }
    }

    fn pattern(&mut self, pattern: &str, span: Span) {
        if let Some(why) = no_pattern(pattern) {
            let message = format!("`{pattern}` is no regular expression: {why}");
            self.faults.push((span, message, None));
        }
    }

    fn names(&mut self, items: &'d [Tree], what: &str) {
        for item in items.iter().filter(|item| item.as_str().is_none()) {
            self.fault(item, what, "a list of texts");
        }
        self.different(items, what);
    }

    /// Texts that are given once each.
    fn different(&mut self, items: &'d [Tree], what: &str) {
        for (at, item) in items.iter().enumerate() {
            let text = item.as_str();
            if text.is_some() && items[..at].iter().any(|before| before.as_str() == text) {
                let text = text.unwrap_or_default();
                let message = format!("`{what}` names `{text}` twice");
                self.faults.push((item.span, message, None));
            }
        }
    }

    fn type_name(&mut self, tree: &'d Tree) {
        match tree.as_str() {
            Some(name) if TYPES.contains(&name) => {}
            Some(name) => {
                let message = format!("`{name}` is no type of JSON Schema");
                self.faults.push((tree.span, message, Some(name)));
            }
            None => self.fault(tree, "type", wanted(Kind::Types)),
        }
    }

    /// Whether a reference leads to a place of the schema. Other documents are not read, and
    /// anchors are the validator's to find.
    fn leads_somewhere(&self, to: &str) -> bool {
        let Some(pointer) = to.strip_prefix("#/") else {
            return to.starts_with('#') || self.root.get("$id").is_some();
        };
        let mut at = self.root;
        for part in pointer.split('/') {
            let part = part.replace("~1", "/").replace("~0", "~");
            let item = || at.items()?.get(part.parse::<usize>().ok()?);
            match at.get(&part).or_else(item) {
                Some(next) => at = next,
                // Escapes of addresses are the validator's to read.
                None => return part.contains('%'),
            }
        }
        true
    }
}

/// Why a text is no regular expression in any syntax. What only Rust's `regex` does not have, such
/// as look-around, is the validator's to read.
fn no_pattern(pattern: &str) -> Option<String> {
    let Err(error) = Parser::new().parse(pattern) else {
        return None;
    };
    let is_certain = match error.kind() {
        ErrorKind::GroupUnclosed
        | ErrorKind::GroupUnopened
        | ErrorKind::RepetitionMissing
        | ErrorKind::EscapeUnexpectedEof => true,
        // Inside a class, other syntaxes take `[` as it is.
        ErrorKind::ClassUnclosed => pattern.matches('[').count() == 1,
        _ => false,
    };
    is_certain.then(|| error.kind().to_string())
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Schema => "a schema: a map, `true` or `false`",
        Kind::Schemas => "a list of at least one schema",
        Kind::Named => "a map of names to schemas",
        Kind::NamedByPattern => "a map of regular expressions to schemas",
        Kind::Types => "the name of a type, or a list of them",
        Kind::Names => "a list of texts",
        Kind::NamesByName => "a map of names to lists of texts",
        Kind::Count => "a whole number from 0",
        Kind::Number => "a number",
        Kind::Positive => "a number above 0",
        Kind::Text | Kind::Reference => "a text",
        Kind::Pattern => "a regular expression",
        Kind::Flag => "`true` or `false`",
        Kind::List => "a list",
        Kind::Any => "a value",
    }
}

#[cfg(test)]
mod tests {
    use crate::compile;
    use crate::loader::NoLoader;
    use crate::source::Source;

    use super::KEYWORDS;

    /// Whether the checker takes a schema.
    fn is_taken(schema: &str) -> bool {
        let text = format!("steps:\n  - {{type: delegate, instructions: do, returns: {schema}}}\n");
        compile(Source::new("x.yaml", text), &NoLoader).is_ok()
    }

    #[test]
    fn keywords_are_in_order() {
        assert!(KEYWORDS.is_sorted_by_key(|(keyword, _)| *keyword));
    }

    #[test]
    fn what_the_validator_takes_is_taken_and_nothing_else() {
        let schemas = [
            "{}",
            "{type: object}",
            "{type: [object, 'null']}",
            "{type: objet}",
            "{type: []}",
            "{type: [string, string]}",
            "{type: 3}",
            "{type: object, properties: {a: {type: integer}}, required: [a]}",
            "{properties: [a]}",
            "{properties: {a: string}}",
            "{properties: {a: {type: int}}}",
            "{required: a}",
            "{required: [1]}",
            "{required: [a, a]}",
            "{required: []}",
            "{minLength: -1}",
            "{minLength: 1.5}",
            "{minLength: 2.0}",
            "{minimum: '1'}",
            "{minimum: -1.5}",
            "{multipleOf: 0}",
            "{multipleOf: 0.5}",
            "{items: {type: string}}",
            "{items: [{type: string}]}",
            "{prefixItems: [{type: string}]}",
            "{prefixItems: []}",
            "{anyOf: []}",
            "{anyOf: [{type: string}, false]}",
            "{anyOf: {type: string}}",
            "{not: 1}",
            "{enum: a}",
            "{enum: []}",
            "{enum: [a, 1]}",
            "{const: null}",
            "{uniqueItems: 'yes'}",
            "{pattern: 1}",
            "{pattern: '('}",
            "{pattern: 'a)'}",
            "{pattern: '*a'}",
            "{pattern: '[a'}",
            "{pattern: 'a\\'}",
            "{pattern: '(?=a)b'}",
            "{pattern: '^(?!a)b$'}",
            "{pattern: '^\\d+$'}",
            "{pattern: '(a)\\1'}",
            "{patternProperties: {'^(a': {type: string}}}",
            "{patternProperties: {'^a': {type: string}}}",
            "{additionalProperties: false}",
            "{additionalProperties: nope}",
            "{dependentRequired: {a: [b]}}",
            "{dependentRequired: {a: b}}",
            "{$defs: {a: {type: string}}, $ref: '#/$defs/a'}",
            "{$defs: {a: {type: string}}, $ref: '#/$defs/b'}",
            "{$ref: 7}",
            "{description: [a]}",
        ];
        for schema in schemas {
            let tree = Source::new("x.yaml", schema).tree();
            let json = tree.map(|tree| tree.to_json()).unwrap_or_default();
            let is_valid = jsonschema::validator_for(&json).is_ok();
            assert_eq!(is_taken(schema), is_valid, "{schema}");
        }
    }
}
