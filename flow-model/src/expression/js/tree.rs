//! Parsing by oxc, and free names and member paths from its tree.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrayExpressionElement, BinaryExpression, BindingIdentifier, CallExpression, ChainElement,
    Expression, Function, IdentifierReference, LogicalExpression, ReturnStatement, UnaryExpression,
    VariableDeclaration, VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::operator::{BinaryOperator, LogicalOperator, UnaryOperator};
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use super::super::{Analysis, Fault, Named, Read, vocabulary};

pub(super) const PARSES: bool = true;

/// Analyses one expression.
pub(super) fn expression(text: &str) -> Result<Analysis, Fault> {
    let allocator = Allocator::default();
    let parser = Parser::new(&allocator, text, SourceType::cjs()).with_options(options());
    match parser.parse_expression() {
        Ok(expression) => {
            let mut tree = Tree::new();
            tree.visit_expression(&expression);
            let mut analysis = tree.finish();
            analysis.faults.extend(never_called(text, &expression));
            Ok(analysis)
        }
        Err(diagnostics) => Err(match diagnostics.first() {
            Some(first) => {
                let span = first
                    .labels
                    .first()
                    .map(|label| (label.offset(), label.len()));
                fault(text, &first.message, span, first.help.as_deref())
            }
            None => fault(text, "Unexpected token", None, None),
        }),
    }
}

/// A function in the place of the value that it would give.
fn never_called(text: &str, expression: &Expression<'_>) -> Option<Fault> {
    let what = match expression {
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => "function",
        Expression::ClassExpression(_) => "class",
        _ => return None,
    };
    let message = format!("a {what} is not a value, and nobody calls it");
    Some(Fault::syntax(message, 0..text.len()).with_help(
        "write what it would give: an expression such as `input.length`, or, in a `transform`, a body with `return`",
    ))
}

/// The first of several arguments, when it is written out as a text.
pub(super) fn first_text(arguments: &str) -> Option<Named> {
    let allocator = Allocator::default();
    let list = format!("[{arguments}]");
    let parser = Parser::new(&allocator, &list, SourceType::cjs()).with_options(options());
    let Ok(Expression::ArrayExpression(list)) = parser.parse_expression() else {
        return None;
    };
    match list.elements.first()? {
        ArrayExpressionElement::StringLiteral(text) => {
            let written = range(text.span);
            let written = written.start.checked_sub(1)?..written.end.checked_sub(1)?;
            Some(Named::within(text.value.as_str(), arguments, written))
        }
        _ => None,
    }
}

/// Analyses a function body that returns something.
pub(super) fn body(text: &str) -> Result<Analysis, Fault> {
    let allocator = Allocator::default();
    let parser = Parser::new(&allocator, text, SourceType::cjs()).with_options(options());
    let parsed = parser.parse();
    if let Some(first) = parsed.diagnostics.first() {
        let span = first
            .labels
            .first()
            .map(|label| (label.offset(), label.len()));
        return Err(fault(text, &first.message, span, first.help.as_deref()));
    }
    let mut tree = Tree::new();
    tree.visit_program(&parsed.program);
    if !tree.returns {
        return Err(
            Fault::syntax("this function body returns nothing", 0..text.len())
                .with_help("write a single expression, or `return` the value"),
        );
    }
    Ok(tree.finish())
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_return_outside_function: true,
        preserve_parens: false,
        ..ParseOptions::default()
    }
}

/// Says what oxc found in words of this language.
fn fault(text: &str, message: &str, span: Option<(u32, u32)>, help: Option<&str>) -> Fault {
    let (start, length) = span.map_or((0, text.len()), |(at, length)| {
        (at as usize, length as usize)
    });
    let mut start = start.min(text.len());
    let mut end = start.saturating_add(length).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    if text[start..end].trim().is_empty() {
        // Something is missing, which is best seen at what stands before it.
        let before = text[..start].trim_end();
        let last = before.chars().next_back().map_or(0, char::len_utf8);
        let range = if before.is_empty() {
            0..text.len()
        } else {
            before.len() - last..before.len()
        };
        return Fault::syntax("the expression is incomplete", range);
    }
    let found = &text[start..end];
    let message = match message.trim_end_matches('.') {
        "Unexpected token" => format!("unexpected `{found}`"),
        message => {
            let mut letters = message.chars();
            let first = letters
                .next()
                .map(|letter| letter.to_lowercase().to_string());
            format!("{}{}", first.unwrap_or_default(), letters.as_str())
        }
    };
    let fault = Fault::syntax(message.replace("`EOF`", "the end"), start..end);
    match help.or_else(|| hint(found)) {
        Some(help) => fault.with_help(help),
        None => fault,
    }
}

/// What somebody who thinks in Jinja meant.
fn hint(found: &str) -> Option<&'static str> {
    Some(match found {
        "and" => "write `&&`",
        "or" => "write `||`",
        "not" => "write `!`",
        "if" | "else" => "write `condition ? a : b`",
        "is" => "write `===`, or `!== undefined`",
        _ => return None,
    })
}

/// Collects names scope by scope. A scope's names are only known at its end, because functions
/// and `var` are visible before they are declared, so references wait until then.
struct Tree {
    scopes: Vec<Scope>,
    hoisting: bool,
    returns: bool,
    /// What is read now is compared, measured or changed.
    examines: bool,
}

#[derive(Default)]
struct Scope {
    /// `var` and the parameters of a function end up here.
    function: bool,
    /// The scope has a `this` of its own.
    this: bool,
    names: HashSet<String>,
    references: Vec<Reference>,
}

enum Reference {
    Read(Read),
    Call(Named),
}

/// Whether an expression is what stands for no value, or an empty text.
fn is_nothing(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::NullLiteral(_) => true,
        Expression::Identifier(name) => name.name == "undefined",
        Expression::StringLiteral(text) => text.value.is_empty(),
        _ => false,
    }
}

/// One step of a path.
enum Key<'e, 'a> {
    Static(String, u32),
    Dynamic(&'e Expression<'a>),
}

impl Reference {
    fn root(&self) -> &str {
        match self {
            Reference::Read(read) => read.path.first().map_or("", String::as_str),
            Reference::Call(named) => &named.name,
        }
    }
}

impl Tree {
    fn new() -> Self {
        let outside = Scope {
            function: true,
            ..Scope::default()
        };
        Tree {
            scopes: vec![outside],
            hoisting: false,
            returns: false,
            examines: false,
        }
    }

    fn finish(mut self) -> Analysis {
        while self.scopes.len() > 1 {
            self.leave_scope();
        }
        let mut analysis = Analysis::default();
        for scope in self.scopes {
            for reference in scope.references {
                if scope.names.contains(reference.root()) {
                    continue;
                }
                match reference {
                    Reference::Call(named) => analysis.calls.push(named),
                    Reference::Read(read) => {
                        let root = read.path.first().map_or("", String::as_str);
                        if !vocabulary::JS_GLOBALS.contains(&root) {
                            analysis.reads.push(read);
                        }
                    }
                }
            }
        }
        analysis.reads.sort_by_key(|read| read.range.start);
        analysis.calls.sort_by_key(|call| call.range.start);
        let known = [vocabulary::JS_FUNCTIONS, vocabulary::JS_GLOBALS].concat();
        for call in analysis.calls.clone() {
            if !known.contains(&call.name.as_str()) {
                analysis.unknown_function(&call.name, call.range, &known);
            }
        }
        analysis
    }

    fn refer(&mut self, reference: Reference) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.references.push(reference);
        }
    }

    fn declare(&mut self, name: &str) {
        let hoisting = self.hoisting;
        let mut scopes = self.scopes.iter_mut().rev();
        if let Some(scope) = scopes.find(|scope| scope.function || !hoisting) {
            scope.names.insert(name.to_owned());
        }
    }

    /// Visits an operand whose being undefined is handled if `optional`.
    fn operand<'a>(&mut self, expression: &Expression<'a>, optional: bool) {
        if !self.path(expression, optional) {
            walk::walk_expression(self, expression);
        }
    }

    /// Walks an operand that is compared, measured or changed.
    fn examined<'a>(&mut self, expression: &Expression<'a>, optional: bool) {
        self.examines = true;
        let is_path = self.path(expression, optional);
        self.examines = false;
        if !is_path {
            walk::walk_expression(self, expression);
        }
    }

    /// Records the path that `expression` is, if it is one.
    fn path<'a>(&mut self, expression: &Expression<'a>, mut optional: bool) -> bool {
        let mut keys = Vec::new();
        let mut root = expression;
        loop {
            root = match root {
                Expression::StaticMemberExpression(member) => {
                    optional |= member.optional;
                    let name = member.property.name.to_string();
                    keys.push(Key::Static(name, member.span.end));
                    &member.object
                }
                Expression::ComputedMemberExpression(member) => {
                    optional |= member.optional;
                    keys.push(key(&member.expression, member.span));
                    &member.object
                }
                Expression::ChainExpression(chain) => match &chain.expression {
                    ChainElement::StaticMemberExpression(member) => {
                        optional |= member.optional;
                        let name = member.property.name.to_string();
                        keys.push(Key::Static(name, member.span.end));
                        &member.object
                    }
                    ChainElement::ComputedMemberExpression(member) => {
                        optional |= member.optional;
                        keys.push(key(&member.expression, member.span));
                        &member.object
                    }
                    _ => break,
                },
                _ => break,
            };
        }
        keys.reverse();
        let name = match root {
            Expression::Identifier(identifier) => Some(identifier.name.as_str()),
            Expression::ThisExpression(_) => Some("this"),
            _ => None,
        };
        match name {
            Some("this") if self.scopes.iter().any(|scope| scope.this) => {}
            Some(name) => self.read(name, root.span(), &keys, optional),
            None if keys.is_empty() => return false,
            None => self.visit_expression(root),
        }
        for key in keys {
            if let Key::Dynamic(key) = key {
                self.visit_expression(key);
            }
        }
        true
    }

    fn read(&mut self, root: &str, span: Span, keys: &[Key<'_, '_>], optional: bool) {
        let mut path = vec![root.to_owned()];
        let mut end = span.end;
        let fixed = keys.iter().map_while(|key| match key {
            Key::Static(name, end) => Some((name, *end)),
            Key::Dynamic(_) => None,
        });
        for (name, name_end) in fixed {
            path.push(name.clone());
            end = name_end;
        }
        let dynamic = keys.iter().any(|key| matches!(key, Key::Dynamic(_)));
        let range = range(Span::new(span.start, end));
        self.refer(Reference::Read(Read {
            path,
            dynamic,
            optional,
            examined: self.examines,
            range,
        }));
    }
}

impl<'a> Visit<'a> for Tree {
    fn enter_scope(&mut self, flags: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        let function = flags.intersects(ScopeFlags::Function | ScopeFlags::Top);
        let this = flags.contains(ScopeFlags::Function) && !flags.contains(ScopeFlags::Arrow);
        self.scopes.push(Scope {
            function,
            this,
            ..Scope::default()
        });
    }

    fn leave_scope(&mut self) {
        let Some(scope) = self.scopes.pop() else {
            return;
        };
        let Some(outer) = self.scopes.last_mut() else {
            return;
        };
        let names = scope.names;
        let free = scope
            .references
            .into_iter()
            .filter(|found| !names.contains(found.root()));
        outer.references.extend(free);
    }

    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        self.declare(name.name.as_str());
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        let outer = self.hoisting;
        self.hoisting = declaration.kind == VariableDeclarationKind::Var;
        walk::walk_variable_declaration(self, declaration);
        self.hoisting = outer;
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if let Some(name) = function.id.as_ref().filter(|_| function.is_declaration()) {
            self.declare(name.name.as_str());
        }
        walk::walk_function(self, function, flags);
    }

    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        // The outermost two scopes are those of the body itself.
        self.returns |= !self.scopes.iter().skip(2).any(|scope| scope.function);
        walk::walk_return_statement(self, statement);
    }

    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        self.read(identifier.name.as_str(), identifier.span, &[], false);
    }

    fn visit_expression(&mut self, expression: &Expression<'a>) {
        self.operand(expression, false);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        match &call.callee {
            Expression::Identifier(function) => {
                let name = function.name.to_string();
                self.refer(Reference::Call(Named {
                    name,
                    range: range(function.span),
                }));
            }
            // What is called on a value is a method, not a field of it.
            Expression::StaticMemberExpression(member) => {
                self.examined(&member.object, member.optional);
            }
            Expression::ComputedMemberExpression(member) => {
                self.examined(&member.object, member.optional);
                self.visit_expression(&member.expression);
            }
            other => self.visit_expression(other),
        }
        self.visit_arguments(&call.arguments);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        // Texts are joined with a plus, and whether there is a value can be asked of any.
        let joins = binary.operator == BinaryOperator::Addition;
        if joins || is_nothing(&binary.left) || is_nothing(&binary.right) {
            self.visit_expression(&binary.left);
            self.visit_expression(&binary.right);
        } else {
            self.examined(&binary.left, false);
            self.examined(&binary.right, false);
        }
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        self.operand(&unary.argument, unary.operator == UnaryOperator::Typeof);
    }

    fn visit_logical_expression(&mut self, logical: &LogicalExpression<'a>) {
        self.operand(&logical.left, logical.operator == LogicalOperator::Coalesce);
        self.visit_expression(&logical.right);
    }
}

/// A key that is known from the text, or the expression that will tell it.
fn key<'e, 'a>(expression: &'e Expression<'a>, member: Span) -> Key<'e, 'a> {
    match expression {
        Expression::StringLiteral(text) => Key::Static(text.value.to_string(), member.end),
        Expression::NumericLiteral(number)
            if number.value.fract() == 0.0 && (0.0..1e15).contains(&number.value) =>
        {
            Key::Static(format!("{}", number.value), member.end)
        }
        _ => Key::Dynamic(expression),
    }
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}
