//! The Jinja dialect: parsed by minijinja, walked here.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use minijinja::machinery::ast::{self, BinOpKind, Expr, Stmt};
use minijinja::machinery::{Span, parse, parse_expr, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind};

use super::pieces::{self, Flaw, Piece, Tag, pieces};
use super::raw::Unraw;
use super::{Analysis, Dialect, Fault, Interpolation, Named, Read, vocabulary};

/// The words that statements begin with.
#[rustfmt::skip]
const STATEMENTS: &[&str] = &[
    "autoescape", "call", "do", "elif", "else", "endautoescape", "endcall", "endfilter", "endfor",
    "endif", "endmacro", "endset", "endwith", "filter", "for", "if", "macro", "raw", "set", "with",
];

/// `elif`s recurse in the parser without a limit of its own.
const MOST_ELIFS: usize = 128;

/// How templates are delimited: `{{ }}` and `{% %}`, no comments, every newline kept.
///
/// Comments begin with a control character no document contains, so that `{#`, as in the shell's
/// `${#PATH}`, is text.
pub fn syntax() -> SyntaxConfig {
    // Building one makes a search automaton; a clone shares it.
    static SYNTAX: LazyLock<SyntaxConfig> = LazyLock::new(|| {
        SyntaxConfig::builder()
            .comment_delimiters("\u{1}{#", "#}\u{1}")
            .keep_trailing_newline(true)
            .build()
            // The delimiters above are distinct and not empty, which is all that is asked of them.
            .unwrap_or_default()
    });
    SYNTAX.clone()
}

/// Analyses a bare expression.
pub(super) fn expression(text: &str) -> Analysis {
    if text.trim().is_empty() {
        return Analysis::fault(Fault::syntax("an expression is needed here", 0..text.len()));
    }
    if let Some(flaw) = pieces::flaw(text, Dialect::Jinja) {
        return Analysis::fault(flaw.fault());
    }
    let source = Unraw::expression(text);
    let lexed = lexer_error(&source.text, true);
    match (parse_expr(&source.text), lexed) {
        (Ok(expr), None) => {
            let mut walk = Walk::new(&source, text, &[]);
            walk.expr(&expr);
            walk.analysis
        }
        (Err(error), None) | (_, Some(error)) => Analysis::fault(fault(&error, &source, text)),
    }
}

/// The first text that is not a token. The parser forgets about it when it follows a string.
fn lexer_error(source: &str, in_expression: bool) -> Option<Error> {
    let error = tokenize(source, in_expression, syntax()).find_map(Result::err)?;
    // Errors without a place get one from the parser.
    error.range().is_some().then_some(error)
}

/// Analyses a template.
pub(super) fn template(text: &str) -> Analysis {
    let pieces = pieces(text, Dialect::Jinja);
    let flaws = flaws(text, &pieces);
    if !flaws.is_empty() {
        return piecewise(text, &pieces, flaws);
    }
    let source = Unraw::template(text);
    match parse(&source.text, "template", syntax()) {
        Ok(template) => {
            let mut walk = Walk::new(&source, text, &pieces);
            walk.stmt(&template);
            walk.analysis
        }
        Err(error) => {
            let error = lexer_error(&source.text, false).unwrap_or(error);
            let fault = fault(&error, &source, text);
            let open = unclosed(text, &pieces).filter(|_| {
                error
                    .detail()
                    .is_some_and(|detail| detail.contains("end of input"))
            });
            piecewise(text, &pieces, vec![open.unwrap_or(fault)])
        }
    }
}

/// Analyses the interpolations of a broken template one by one, as far as that can be done.
fn piecewise(text: &str, pieces: &[Piece], faults: Vec<Fault>) -> Analysis {
    // Statements declare names; without them a name cannot be told from a read.
    if pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Statement(_)))
    {
        return Analysis {
            faults,
            ..Analysis::default()
        };
    }
    let mut analysis = Analysis::default();
    for piece in pieces {
        let Piece::Interpolation(tag) = piece else {
            continue;
        };
        if let Some(flaw) = tag_flaw(text, tag) {
            analysis.faults.push(flaw);
            continue;
        }
        let part = &text[tag.inner.clone()];
        analysis.absorb(expression(part), tag.inner.start);
        let source = Unraw::expression(part);
        let filters = match parse_expr(&source.text) {
            Ok(expr) => chain(&expr),
            Err(_) => Vec::new(),
        };
        analysis.interpolations.push(Interpolation {
            range: tag.range.clone(),
            filters,
        });
    }
    if analysis.faults.is_empty() {
        analysis.faults = faults;
    }
    analysis
}

/// Faults that can be seen before parsing.
fn flaws(text: &str, pieces: &[Piece]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut elifs = 0;
    for piece in pieces {
        let tag = match piece {
            Piece::Interpolation(tag) | Piece::Statement(tag) => tag,
            Piece::Text(_) | Piece::Raw { .. } => continue,
        };
        let no_statement = matches!(piece, Piece::Statement(_))
            .then(|| no_statement(text, tag))
            .flatten();
        faults.extend(no_statement.or_else(|| tag_flaw(text, tag)));
        if matches!(piece, Piece::Statement(_)) && keyword(text, tag) == "elif" {
            elifs += 1;
            if elifs == MOST_ELIFS + 1 {
                faults.push(Flaw::Deep(tag.range.clone()).fault());
            }
        }
    }
    faults
}

fn tag_flaw(text: &str, tag: &Tag) -> Option<Fault> {
    if let Some(flaw) = &tag.flaw {
        return Some(flaw.fault());
    }
    text[tag.inner.clone()]
        .is_empty()
        .then(|| Fault::syntax("an expression is needed between these", tag.range.clone()))
}

/// `{%` that begins no statement and has no end either: text that was not meant for Jinja, such as
/// a format of `printf`. What is wrong with the rest of it would lead astray.
fn no_statement(text: &str, tag: &Tag) -> Option<Fault> {
    let word = keyword(text, tag);
    if tag.flaw.is_none() || STATEMENTS.contains(&word) {
        return None;
    }
    let start = tag.range.start;
    let message = match word {
        "" => "`{%` begins a statement, and none follows".to_owned(),
        word => format!("`{{%` begins a statement, and `{word}` is none"),
    };
    let fault = Fault::syntax(message, start..start + 2);
    Some(fault.with_help(
        "put text that contains `{%` between `{% raw %}` and `{% endraw %}`, or write `{{ '{%' }}`",
    ))
}

fn keyword<'a>(text: &'a str, tag: &Tag) -> &'a str {
    let inner = &text[tag.inner.clone()];
    let end = inner
        .find(|letter: char| !letter.is_ascii_alphanumeric())
        .unwrap_or(inner.len());
    &inner[..end]
}

/// The innermost statement that is opened and never closed.
fn unclosed(text: &str, pieces: &[Piece]) -> Option<Fault> {
    let mut open: Vec<(&str, &Tag)> = Vec::new();
    for piece in pieces {
        let Piece::Statement(tag) = piece else {
            continue;
        };
        let word = keyword(text, tag);
        match word {
            "for" | "if" | "with" | "filter" | "autoescape" | "macro" | "call" => {
                open.push((word, tag));
            }
            "set" if !text[tag.inner.clone()].contains('=') => open.push((word, tag)),
            _ => {
                if let Some(name) = word.strip_prefix("end") {
                    open.pop_if(|(word, _)| *word == name)?;
                }
            }
        }
    }
    let (word, tag) = open.pop()?;
    let fault = Fault::syntax(format!("`{word}` is never closed"), tag.range.clone());
    Some(fault.with_help(format!("add `{{% end{word} %}}`")))
}

/// Says what minijinja found in words of this language.
fn fault(error: &Error, source: &Unraw<'_>, text: &str) -> Fault {
    let mut range = error.range().unwrap_or(0..0);
    if error.kind() == ErrorKind::BadEscape {
        // The error is raised with the place of the token before the string.
        range = string_after(&source.text, range.end).unwrap_or(range);
        let range = original(source, text, range);
        return Fault::syntax("this string has an escape that means nothing", range)
            .with_help("write `\\\\` for a backslash, or a raw string `r'…'`");
    }
    let range = original(source, text, range);
    let found = &text[range.clone()];
    let detail = error.detail().unwrap_or("this does not parse");
    let message = if detail == "unexpected input after expression" {
        format!("unexpected `{found}` after the expression")
    } else if detail == "unexpected character" {
        format!("unexpected `{found}`")
    } else if detail == "template exceeds maximum recursion limits" {
        return Flaw::Deep(range).fault();
    } else if let Some(expected) = detail.strip_prefix("unexpected end of input, expected ") {
        match expected {
            "expression" => "the expression is incomplete".to_owned(),
            _ => format!("the expression is incomplete, expected {}", plain(expected)),
        }
    } else if let Some(word) = detail.strip_prefix("unknown statement ") {
        format!("there is no statement `{word}`")
    } else {
        plain(detail)
    };
    let fault = Fault::syntax(message, range.clone());
    match hint(&text[range.start..]) {
        Some(help) => fault.with_help(help),
        None => fault,
    }
}

/// minijinja's names of its delimiters, spelled as they are written.
fn plain(detail: &str) -> String {
    detail
        .replace("end of variable block", "`}}`")
        .replace("end of block", "`%}`")
}

/// What somebody who thinks in JavaScript meant.
fn hint(rest: &str) -> Option<&'static str> {
    if rest.starts_with("==") && !rest.starts_with("===") {
        return None;
    }
    [
        ("&&", "write `and`"),
        ("||", "write `or`"),
        ("|", "write `or` for a choice, `| name` for a filter"),
        ("===", "write `==`"),
        ("=", "write `==` to compare"),
        ("!", "write `not`"),
        ("?", "write `a if condition else b`"),
        ("`", "write strings in quotes"),
    ]
    .into_iter()
    .find_map(|(start, help)| rest.starts_with(start).then_some(help))
}

/// The range of the string literal that follows `from`.
fn string_after(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let start = (from..bytes.len()).find(|&at| matches!(bytes[at], b'\'' | b'"'))?;
    let mut end = start + 1;
    while *bytes.get(end)? != bytes[start] {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    Some(start..end + 1)
}

/// A range of minijinja's in the original text, on character boundaries.
fn original(source: &Unraw<'_>, text: &str, range: Range<usize>) -> Range<usize> {
    let start = floor(text, source.offset(range.start));
    let mut end = source.offset(range.end.max(range.start)).max(start);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The filters applied to the whole of an expression, innermost first.
fn chain(mut expr: &Expr<'_>) -> Vec<String> {
    let mut filters = Vec::new();
    while let Expr::Filter(filter) = expr {
        filters.push(filter.name.to_owned());
        match &filter.expr {
            Some(inner) => expr = inner,
            None => break,
        }
    }
    filters.reverse();
    filters
}

/// Walks a syntax tree, knowing which names are local where.
struct Walk<'a> {
    source: &'a Unraw<'a>,
    text: &'a str,
    pieces: &'a [Piece],
    scopes: Vec<HashSet<&'a str>>,
    analysis: Analysis,
}

/// One step of a path.
enum Key<'e, 'a> {
    Static(String, Span),
    Dynamic(&'e Expr<'a>),
}

impl<'a> Walk<'a> {
    fn new(source: &'a Unraw<'a>, text: &'a str, pieces: &'a [Piece]) -> Self {
        let scopes = vec![HashSet::new()];
        Walk {
            source,
            text,
            pieces,
            scopes,
            analysis: Analysis::default(),
        }
    }

    fn range(&self, start: u32, end: u32) -> Range<usize> {
        original(self.source, self.text, start as usize..end as usize)
    }

    fn local(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains(name))
    }

    fn declare(&mut self, name: &'a str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name);
        }
    }

    fn scoped(&mut self, inside: impl FnOnce(&mut Self)) {
        self.scopes.push(HashSet::new());
        inside(self);
        self.scopes.pop();
    }

    fn stmts(&mut self, stmts: &[Stmt<'a>]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt<'a>) {
        match stmt {
            Stmt::Template(template) => self.stmts(&template.children),
            Stmt::EmitExpr(emit) => self.emit(&emit.expr, emit.span()),
            Stmt::EmitRaw(_) => {}
            Stmt::ForLoop(repeat) => self.for_loop(repeat),
            Stmt::IfCond(branch) => {
                self.expr(&branch.expr);
                self.stmts(&branch.true_body);
                self.stmts(&branch.false_body);
            }
            Stmt::WithBlock(with) => self.scoped(|walk| {
                for (target, value) in &with.assignments {
                    walk.expr(value);
                    walk.target(target);
                }
                walk.stmts(&with.body);
            }),
            Stmt::Set(set) => {
                self.expr(&set.expr);
                self.target(&set.target);
            }
            Stmt::SetBlock(set) => {
                self.stmts(&set.body);
                if let Some(filter) = &set.filter {
                    self.expr(filter);
                }
                self.target(&set.target);
            }
            Stmt::AutoEscape(escape) => {
                self.expr(&escape.enabled);
                self.stmts(&escape.body);
            }
            Stmt::FilterBlock(block) => {
                self.stmts(&block.body);
                self.expr(&block.filter);
            }
            Stmt::Macro(declared) => {
                self.declare(declared.name);
                self.macro_body(declared);
            }
            Stmt::CallBlock(block) => {
                self.call(&block.call);
                self.macro_body(&block.macro_decl);
            }
            Stmt::Do(run) => self.call(&run.call),
        }
    }

    fn emit(&mut self, expr: &Expr<'a>, span: Span) {
        self.expr(expr);
        let start = self.source.offset(span.start_offset as usize);
        let piece = self
            .pieces
            .binary_search_by_key(&start, |piece| piece.range().start)
            .ok();
        let range = match piece.map(|index| &self.pieces[index]) {
            Some(Piece::Interpolation(tag)) => tag.range.clone(),
            _ => self.range(span.start_offset, span.end_offset),
        };
        self.analysis.interpolations.push(Interpolation {
            range,
            filters: chain(expr),
        });
    }

    fn for_loop(&mut self, repeat: &ast::ForLoop<'a>) {
        self.expr(&repeat.iter);
        self.scoped(|walk| {
            walk.target(&repeat.target);
            if let Some(filter) = &repeat.filter_expr {
                walk.expr(filter);
            }
            walk.declare("loop");
            walk.stmts(&repeat.body);
        });
        self.stmts(&repeat.else_body);
    }

    fn macro_body(&mut self, declared: &ast::Macro<'a>) {
        self.scoped(|walk| {
            walk.declare("caller");
            for argument in &declared.args {
                walk.target(argument);
            }
            for default in &declared.defaults {
                walk.expr(default);
            }
            walk.stmts(&declared.body);
        });
    }

    /// Declares the names that an assignment binds.
    fn target(&mut self, target: &Expr<'a>) {
        match target {
            Expr::Var(name) => self.declare(name.id),
            Expr::List(list) => list.items.iter().for_each(|item| self.target(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.target(item)),
            // `{% set ns.x = 1 %}` changes what `ns` holds.
            Expr::GetAttr(field) => self.expr(&field.expr),
            other => self.expr(other),
        }
    }

    fn exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr<'a>>)
    where
        'a: 'e,
    {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr<'a>) {
        match expr {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => {
                self.path(expr, Manner::default());
            }
            Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.examined(&slice.expr);
                self.exprs(
                    [&slice.start, &slice.stop, &slice.step]
                        .into_iter()
                        .flatten(),
                );
            }
            Expr::UnaryOp(unary) => self.expr(&unary.expr),
            Expr::BinOp(binary) => {
                let operands = [&binary.left, &binary.right];
                match binary.op {
                    BinOpKind::ScAnd | BinOpKind::ScOr | BinOpKind::Add | BinOpKind::Concat => {
                        self.exprs(operands);
                    }
                    _ => self.compared(&operands),
                }
            }
            Expr::Compare(compare) => {
                let others = compare.ops.iter().map(|op| &op.expr);
                let operands: Vec<_> = [&compare.expr].into_iter().chain(others).collect();
                self.compared(&operands);
            }
            Expr::IfExpr(choice) => {
                self.exprs([&choice.true_expr, &choice.test_expr]);
                self.exprs(&choice.false_expr);
            }
            Expr::Filter(filter) => self.filter(filter, filter.span()),
            Expr::Test(test) => self.test(test, test.span()),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.exprs(&list.items),
            Expr::Tuple(tuple) => self.exprs(&tuple.items),
            Expr::Map(map) => {
                for (key, value) in map.keys.iter().zip(&map.values) {
                    self.exprs([key, value]);
                }
            }
        }
    }

    fn args(&mut self, args: &[ast::CallArg<'a>]) {
        for arg in args {
            match arg {
                ast::CallArg::Pos(expr)
                | ast::CallArg::Kwarg(_, expr)
                | ast::CallArg::PosSplat(expr)
                | ast::CallArg::KwargSplat(expr) => self.expr(expr),
            }
        }
    }

    /// Walks an operand that is read in a certain manner.
    fn operand(&mut self, expr: &Expr<'a>, manner: Manner) {
        match expr {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.path(expr, manner),
            other => self.expr(other),
        }
    }

    /// Walks what is compared or counted. Whether there is a value can be asked of any.
    fn compared(&mut self, operands: &[&Expr<'a>]) {
        let asks = operands.iter().any(|operand| is_nothing(operand));
        for operand in operands {
            match asks {
                true => self.expr(operand),
                false => self.examined(operand),
            }
        }
    }

    /// Walks an operand that is compared, measured or changed.
    fn examined(&mut self, expr: &Expr<'a>) {
        let manner = Manner {
            examined: true,
            ..Manner::default()
        };
        self.operand(expr, manner);
    }

    fn filter(&mut self, filter: &ast::Filter<'a>, span: Span) {
        if let Some(operand) = &filter.expr {
            let manner = Manner {
                optional: matches!(filter.name, "default" | "d"),
                examined: !vocabulary::PASSING.contains(&filter.name),
            };
            self.operand(operand, manner);
        }
        let start = span.start_offset;
        let range = self.range(start, start + filter.name.len() as u32);
        if !vocabulary::FILTERS.contains(&filter.name) {
            self.analysis.unknown_filter(filter.name, range.clone());
        }
        self.analysis.filters.push(Named {
            name: filter.name.to_owned(),
            range,
        });
        let named = match filter.name {
            "select" | "reject" | "map" => 0,
            "selectattr" | "rejectattr" => 1,
            _ => usize::MAX,
        };
        if let Some(ast::CallArg::Pos(Expr::Const(name))) = filter.args.get(named) {
            self.name_in_string(filter.name == "map", &name.value, name.span());
        }
        let pattern = match filter.args.first() {
            _ if vocabulary::takes_pattern(filter.name) => filter.args.first(),
            Some(ast::CallArg::Pos(Expr::Const(name)))
                if filter.name == "map"
                    && name.value.as_str().is_some_and(vocabulary::takes_pattern) =>
            {
                filter.args.get(1)
            }
            _ => None,
        };
        if let Some(ast::CallArg::Pos(Expr::Const(pattern))) = pattern
            && let Some(text) = pattern.value.as_str()
        {
            let span = pattern.span();
            let range = self.range(span.start_offset, span.end_offset);
            let pattern = Named::within(text, self.text, range);
            self.analysis.patterns.push(pattern);
        }
        self.args(&filter.args);
    }

    /// Checks the filter or test that `map`, `select` and their kin are told to apply.
    fn name_in_string(&mut self, filter: bool, value: &minijinja::Value, span: Span) {
        let Some(name) = value.as_str() else { return };
        let range = self.range(span.start_offset, span.end_offset);
        let range = Named::within(name, self.text, range).range;
        if filter && !vocabulary::FILTERS.contains(&name) {
            self.analysis.unknown_filter(name, range);
        } else if !filter && !vocabulary::TESTS.contains(&name) {
            self.analysis.unknown_test(name, range);
        }
    }

    fn test(&mut self, test: &ast::Test<'a>, span: Span) {
        let asks = matches!(test.name, "defined" | "undefined");
        let manner = Manner {
            optional: asks,
            examined: !asks && test.name != "none",
        };
        self.operand(&test.expr, manner);
        if !vocabulary::TESTS.contains(&test.name) {
            let start = span.start_offset;
            let range = self.range(start, start + test.name.len() as u32);
            self.analysis.unknown_test(test.name, range);
        }
        self.args(&test.args);
    }

    fn call(&mut self, call: &ast::Call<'a>) {
        match &call.expr {
            Expr::Var(function) if self.local(function.id) => {}
            Expr::Var(function) => {
                let span = function.span();
                let range = self.range(span.start_offset, span.end_offset);
                if !vocabulary::FUNCTIONS.contains(&function.id) {
                    let known = vocabulary::FUNCTIONS;
                    self.analysis
                        .unknown_function(function.id, range.clone(), known);
                }
                self.analysis.calls.push(Named {
                    name: function.id.to_owned(),
                    range,
                });
            }
            // What is called on a value is a method, not a field of it.
            Expr::GetAttr(method) => self.examined(&method.expr),
            other => self.expr(other),
        }
        self.args(&call.args);
    }

    /// Walks a chain of `.name` and `[key]`, and records what it reads.
    fn path(&mut self, expr: &Expr<'a>, manner: Manner) {
        let mut keys = Vec::new();
        let mut root = expr;
        loop {
            root = match root {
                Expr::GetAttr(attr) => {
                    keys.push(Key::Static(attr.name.to_owned(), attr.span()));
                    &attr.expr
                }
                Expr::GetItem(item) => {
                    keys.push(match constant(&item.subscript_expr) {
                        Some(key) => Key::Static(key, item.span()),
                        None => Key::Dynamic(&item.subscript_expr),
                    });
                    &item.expr
                }
                _ => break,
            };
        }
        keys.reverse();
        if let Expr::Var(name) = root {
            if !self.local(name.id) {
                let span = name.span();
                let mut path = vec![name.id.to_owned()];
                let mut end = span.end_offset;
                let fixed = keys.iter().map_while(|key| match key {
                    Key::Static(key, span) => Some((key, span.end_offset)),
                    Key::Dynamic(_) => None,
                });
                for (key, key_end) in fixed {
                    path.push(key.clone());
                    end = key_end;
                }
                let dynamic = keys.iter().any(|key| matches!(key, Key::Dynamic(_)));
                let range = self.range(span.start_offset, end);
                self.analysis.reads.push(Read {
                    path,
                    dynamic,
                    optional: manner.optional,
                    examined: manner.examined,
                    range,
                });
            }
        } else {
            self.expr(root);
        }
        for key in keys {
            if let Key::Dynamic(key) = key {
                self.expr(key);
            }
        }
    }
}

/// The keys of a path, root first, when the text tells them all.
pub(super) fn fixed_path(expr: &Expr<'_>) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    let mut root = expr;
    loop {
        root = match root {
            Expr::GetAttr(attr) => {
                keys.push(attr.name.to_owned());
                &attr.expr
            }
            Expr::GetItem(item) => {
                keys.push(constant(&item.subscript_expr)?);
                &item.expr
            }
            Expr::Var(name) => {
                keys.push(name.id.to_owned());
                keys.reverse();
                return Some(keys);
            }
            _ => return None,
        };
    }
}

/// Whether an expression is what stands for no value, or an empty text.
fn is_nothing(expr: &Expr<'_>) -> bool {
    match expr {
        Expr::Const(constant) => {
            constant.value.is_none() || constant.value.as_str().is_some_and(str::is_empty)
        }
        _ => false,
    }
}

/// How a value is read.
#[derive(Clone, Copy, Default)]
struct Manner {
    /// Its being undefined is handled.
    optional: bool,
    /// It is compared, measured or changed.
    examined: bool,
}

/// A key that is known from the text.
fn constant(expr: &Expr<'_>) -> Option<String> {
    let (value, negative) = match expr {
        Expr::Const(constant) => (&constant.value, false),
        Expr::UnaryOp(unary) => match (&unary.op, &unary.expr) {
            (ast::UnaryOpKind::Neg, Expr::Const(constant)) => (&constant.value, true),
            _ => return None,
        },
        _ => return None,
    };
    match value.as_str() {
        Some(key) if !negative => Some(key.to_owned()),
        None if value.is_integer() => Some(format!("{}{value}", if negative { "-" } else { "" })),
        _ => None,
    }
}
