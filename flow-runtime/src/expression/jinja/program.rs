//! Jinja compiled: parsed by minijinja, its instructions changed where they would be unbounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flow_model::expression::{syntax, unraw, unraw_expression};
use minijinja::machinery::ast::{BinOpKind, CallArg, Compare, CompareOpKind, Expr, Stmt};
use minijinja::machinery::{CodeGenerator, Instruction, Instructions, parse, parse_expr};
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, Value as Jinja};
use self_cell::self_cell;

use super::super::error::EvalError;
use super::order;

/// Bytes that constants may be folded into while compiling.
const MOST_FOLDED: u64 = 1024 * 1024;
/// Programs longer than this are counted although they run but once.
const LONG: u32 = 128;
/// Raw text shorter than this is cheaper than what counting it costs.
const SHORT: usize = 16;

type Blocks = BTreeMap<&'static str, Instructions<'static>>;

/// No template has blocks.
pub(super) static NO_BLOCKS: Blocks = BTreeMap::new();

self_cell! {
    /// Instructions and the text they point into.
    pub(super) struct Code {
        owner: String,
        #[covariant]
        dependent: Instructions,
    }
}

/// What was compiled.
pub(super) struct Compiled {
    pub(super) code: Code,
    /// The names given to `variable(…)`.
    pub(super) variables: Vec<Arc<str>>,
    /// The whole expression is a path: root and keys.
    pub(super) path: Option<Vec<String>>,
    /// `loop(…)` is used as a value, so that marks of a command would end up in it.
    pub(super) recurses: bool,
}

/// Raw text of a template inside a loop.
#[derive(Debug)]
pub(super) struct RawText(pub(super) Arc<str>);

impl Object for RawText {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

/// Compiles a bare expression.
pub(super) fn expression(text: &str) -> Result<Compiled, EvalError> {
    let mut path = None;
    let code = compiled(unraw_expression(text).into_owned(), |source| {
        let tree = parse_expr(source).map_err(|error| super::error(&error))?;
        let mut folding = Folding::new();
        folding.expr(&tree)?;
        folding.finish()?;
        path = constant_path(&tree);
        let mut generator = CodeGenerator::new("expression", source);
        generator.compile_expr(&tree);
        Ok(bounded(generator.finish().0))
    })?;
    Ok(finished(code, path))
}

/// Compiles a template.
pub(super) fn template(text: &str) -> Result<Compiled, EvalError> {
    let code = compiled(unraw(text).into_owned(), |source| {
        let tree =
            parse(source, "template", syntax()).map_err(|error: Error| super::error(&error))?;
        let mut folding = Folding::new();
        folding.stmt(&tree)?;
        folding.finish()?;
        let mut generator = CodeGenerator::new("template", source);
        generator.compile_stmt(&tree);
        Ok(bounded(generator.finish().0))
    })?;
    Ok(finished(code, None))
}

/// Why a text was not compiled as it is.
enum Unfit {
    Faulty(EvalError),
    /// Constants that end at these places may not be folded.
    Kept(BTreeSet<usize>),
}

impl From<EvalError> for Unfit {
    fn from(error: EvalError) -> Self {
        Unfit::Faulty(error)
    }
}

/// Compiles a text. Where minijinja would make something else of constants while compiling than
/// we do at run time, they pass through a filter that gives them back.
fn compiled(
    text: String,
    mut compile: impl for<'s> FnMut(&'s str) -> Result<Instructions<'s>, Unfit>,
) -> Result<Code, EvalError> {
    let places = match Code::try_new(text.clone(), |source| compile(source)) {
        Ok(code) => return Ok(code),
        Err(Unfit::Faulty(error)) => return Err(error),
        Err(Unfit::Kept(places)) => places,
    };
    let mut kept = text;
    for place in places.into_iter().rev() {
        if kept.is_char_boundary(place) {
            kept.insert_str(place, "|kept");
        }
    }
    Code::try_new(kept, |source| compile(source)).map_err(|unfit| match unfit {
        Unfit::Faulty(error) => error,
        Unfit::Kept(_) => EvalError::syntax(
            "constants of different kinds cannot be compared here; put one of them into `state`",
        ),
    })
}

fn finished(code: Code, path: Option<Vec<String>>) -> Compiled {
    let mut variables: Vec<Arc<str>> = Vec::new();
    let mut recurses = false;
    let mut last: Option<&Instruction<'_>> = None;
    for (instruction, _) in each(code.borrow_dependent()) {
        if let (Instruction::CallFunction("variable", Some(1)), Some(Instruction::LoadConst(name))) =
            (instruction, last)
            && let Some(name) = name.to_str()
            && !variables.contains(&name)
        {
            variables.push(name);
        }
        recurses |= matches!(instruction, Instruction::CallFunction("loop", _));
        last = Some(instruction);
    }
    Compiled {
        code,
        variables,
        path,
        recurses,
    }
}

fn each<'i, 's>(
    instructions: &'i Instructions<'s>,
) -> impl Iterator<Item = (&'i Instruction<'s>, u32)> {
    (0..).map_while(|at| Some((instructions.get(at)?, at)))
}

/// The keys of an expression that only reads: `state.user['name'][0]`.
fn constant_path(tree: &Expr<'_>) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    let mut here = tree;
    loop {
        here = match here {
            Expr::Var(name) => {
                keys.push(name.id.to_owned());
                keys.reverse();
                return Some(keys);
            }
            Expr::GetAttr(attr) => {
                keys.push(attr.name.to_owned());
                &attr.expr
            }
            Expr::GetItem(item) => {
                let Expr::Const(key) = &item.subscript_expr else {
                    return None;
                };
                let key = match key.value.as_str() {
                    // A key that looks like a number would be taken for the index of a list.
                    Some(key) if key.parse::<i64>().is_ok() => return None,
                    Some(key) => key.to_owned(),
                    None => key.value.as_usize()?.to_string(),
                };
                keys.push(key);
                &item.expr
            }
            _ => return None,
        };
    }
}

/// The same instructions, with everything that can grow or repeat counted.
fn bounded<'s>(old: Instructions<'s>) -> Instructions<'s> {
    let mut repeats = false;
    let mut bodies = Vec::new();
    for (instruction, at) in each(&old) {
        repeats |= at > LONG;
        match instruction {
            Instruction::Iterate(_) | Instruction::StoreLocal(_) => repeats = true,
            Instruction::BuildMacro(_, offset, _) => {
                repeats = true;
                bodies.push(*offset);
            }
            _ => {}
        }
    }
    let mut writer = Writer {
        new: Instructions::new(old.name(), old.source()),
        length: 0,
        span: None,
        line: 0,
    };
    let mut moved = Vec::new();
    for (instruction, at) in each(&old) {
        moved.push(writer.length);
        writer.span = old.get_span(at);
        writer.line = old.get_line(at).unwrap_or_default();
        if bodies.contains(&at) {
            writer.count(8);
            writer.capture(true);
        }
        match instruction {
            Instruction::StringConcat => writer.filter("~", 2),
            Instruction::Add => writer.filter("+", 2),
            Instruction::Mul => writer.filter("*", 2),
            Instruction::Lt => writer.filter("<", 2),
            Instruction::Lte => writer.filter("<=", 2),
            Instruction::Gt => writer.filter(">", 2),
            Instruction::Gte => writer.filter(">=", 2),
            Instruction::CompareAndPreserve(operator) => {
                // The type of the operator has no public name; equality comes before these four
                // and membership after them.
                let ordering = match *operator as u8 {
                    2 => Some("<"),
                    3 => Some("<="),
                    4 => Some(">"),
                    5 => Some(">="),
                    _ => None,
                };
                if let Some(ordering) = ordering {
                    writer.filter(order::preserving(ordering), 2);
                    writer.add(Instruction::UnpackList(2));
                }
                if repeats {
                    writer.count(64);
                }
                writer.add(instruction.clone());
            }
            Instruction::BeginCapture(_) => {
                writer.capture(true);
                writer.add(instruction.clone());
            }
            Instruction::EndCapture => {
                writer.add(instruction.clone());
                writer.capture(false);
            }
            Instruction::Return => {
                writer.capture(false);
                writer.add(instruction.clone());
            }
            instruction if repeats => writer.repeated(instruction, at),
            instruction => writer.add(instruction.clone()),
        }
    }
    moved.push(writer.length);
    let mut new = writer.new;
    let mut at = 0;
    while let Some(instruction) = new.get_mut(at) {
        match instruction {
            Instruction::Iterate(target)
            | Instruction::Jump(target)
            | Instruction::JumpIfFalse(target)
            | Instruction::JumpIfFalseOrPop(target)
            | Instruction::JumpIfTrueOrPop(target)
            | Instruction::BuildMacro(_, target, _) => {
                *target = moved.get(*target as usize).copied().unwrap_or(*target);
            }
            _ => {}
        }
        at += 1;
    }
    new
}

struct Writer<'s> {
    new: Instructions<'s>,
    length: u32,
    span: Option<minijinja::machinery::Span>,
    line: usize,
}

impl<'s> Writer<'s> {
    fn add(&mut self, instruction: Instruction<'s>) {
        self.length += 1;
        match self.span {
            Some(span) => self.new.add_with_span(instruction, span),
            None => {
                let line = u16::try_from(self.line).unwrap_or(u16::MAX);
                self.new.add_with_line(instruction, line)
            }
        };
    }

    fn filter(&mut self, name: &'static str, arguments: u16) {
        self.add(Instruction::ApplyFilter(name, Some(arguments), !0));
    }

    /// Counts work.
    fn count(&mut self, units: u32) {
        self.add(Instruction::LoadConst(Jinja::from(units)));
        self.add(Instruction::ApplyFilter("meter", Some(1), !0));
        self.add(Instruction::DiscardTop);
    }

    /// Says that what is emitted from here on is kept in a string, or is not any more.
    fn capture(&mut self, begins: bool) {
        self.add(Instruction::LoadConst(Jinja::from(begins)));
        self.filter("capture", 1);
        self.add(Instruction::DiscardTop);
    }

    /// An instruction of a program that can repeat itself or build on what it built.
    fn repeated(&mut self, instruction: &Instruction<'s>, at: u32) {
        match instruction {
            Instruction::Iterate(end) => {
                self.add(instruction.clone());
                self.count(end.saturating_sub(at) + 8);
            }
            Instruction::EmitRaw(text) if text.len() > SHORT => {
                let text = RawText(Arc::from(*text));
                self.add(Instruction::LoadConst(Jinja::from_object(text)));
                self.add(Instruction::Emit);
            }
            Instruction::StoreLocal(_) => {
                self.filter("weigh", 1);
                self.add(instruction.clone());
            }
            Instruction::SetAttr(_) => {
                self.add(Instruction::Swap);
                self.filter("weigh-held", 1);
                self.add(Instruction::Swap);
                self.add(instruction.clone());
            }
            Instruction::BuildList(Some(items)) => match u16::try_from(*items) {
                Ok(items) => self.filter("[]", items),
                Err(_) => self.add(instruction.clone()),
            },
            Instruction::BuildMap(pairs) => match u16::try_from(*pairs * 2) {
                Ok(items) => self.filter("{}", items),
                Err(_) => self.add(instruction.clone()),
            },
            Instruction::ApplyFilter(name, Some(arguments), _) if *name != "default" => {
                self.add(Instruction::LoadConst(Jinja::from(*name)));
                self.filter("metered-filter", arguments + 1);
            }
            Instruction::PerformTest(name, Some(arguments), _)
                if !matches!(*name, "defined" | "undefined") =>
            {
                self.add(Instruction::LoadConst(Jinja::from(*name)));
                self.filter("metered-test", arguments + 1);
            }
            Instruction::Slice => {
                self.count(64);
                self.add(instruction.clone());
            }
            Instruction::Eq => self.compare("=="),
            Instruction::Ne => self.compare("!="),
            Instruction::In => self.compare("in"),
            other => self.add(other.clone()),
        }
    }

    fn compare(&mut self, test: &'static str) {
        self.add(Instruction::LoadConst(Jinja::from(test)));
        self.filter("metered-test", 3);
    }
}

/// Keeps the compiler from folding constants into something large.
struct Folding {
    left: u64,
    /// Where constants end that may not be folded.
    kept: BTreeSet<usize>,
}

impl Folding {
    fn new() -> Self {
        Folding {
            left: MOST_FOLDED,
            kept: BTreeSet::new(),
        }
    }

    fn finish(self) -> Result<(), Unfit> {
        match self.kept.is_empty() {
            true => Ok(()),
            false => Err(Unfit::Kept(self.kept)),
        }
    }

    /// Keeps constants apart between which an operator means something else here.
    fn keep(&mut self, differs: bool, operand: &Expr<'_>) {
        if differs {
            self.kept.insert(leaf_end(operand));
        }
    }

    fn stmts(&mut self, stmts: &[Stmt<'_>]) -> Result<(), EvalError> {
        stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt<'_>) -> Result<(), EvalError> {
        match stmt {
            Stmt::Template(template) => self.stmts(&template.children),
            Stmt::EmitExpr(emit) => self.expr(&emit.expr),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::ForLoop(repeat) => {
                self.expr(&repeat.iter)?;
                self.maybe(repeat.filter_expr.as_ref())?;
                self.stmts(&repeat.body)?;
                self.stmts(&repeat.else_body)
            }
            Stmt::IfCond(branch) => {
                self.expr(&branch.expr)?;
                self.stmts(&branch.true_body)?;
                self.stmts(&branch.false_body)
            }
            Stmt::WithBlock(with) => {
                let mut values = with.assignments.iter();
                values.try_for_each(|(_, value)| self.expr(value))?;
                self.stmts(&with.body)
            }
            Stmt::Set(set) => self.expr(&set.expr),
            Stmt::SetBlock(set) => {
                self.maybe(set.filter.as_ref())?;
                self.stmts(&set.body)
            }
            Stmt::AutoEscape(escape) => {
                self.expr(&escape.enabled)?;
                self.stmts(&escape.body)
            }
            Stmt::FilterBlock(block) => {
                self.expr(&block.filter)?;
                self.stmts(&block.body)
            }
            Stmt::Macro(declared) => {
                self.exprs(&declared.defaults)?;
                self.stmts(&declared.body)
            }
            Stmt::CallBlock(block) => {
                self.args(&block.call.args)?;
                self.expr(&block.call.expr)?;
                self.exprs(&block.macro_decl.defaults)?;
                self.stmts(&block.macro_decl.body)
            }
            Stmt::Do(run) => {
                self.expr(&run.call.expr)?;
                self.args(&run.call.args)
            }
        }
    }

    fn maybe(&mut self, expr: Option<&Expr<'_>>) -> Result<(), EvalError> {
        expr.map_or(Ok(()), |expr| self.expr(expr))
    }

    fn exprs(&mut self, exprs: &[Expr<'_>]) -> Result<(), EvalError> {
        exprs.iter().try_for_each(|expr| self.expr(expr))
    }

    fn args(&mut self, args: &[CallArg<'_>]) -> Result<(), EvalError> {
        args.iter().try_for_each(|arg| match arg {
            CallArg::Pos(expr)
            | CallArg::Kwarg(_, expr)
            | CallArg::PosSplat(expr)
            | CallArg::KwargSplat(expr) => self.expr(expr),
        })
    }

    fn expr(&mut self, expr: &Expr<'_>) -> Result<(), EvalError> {
        match expr {
            Expr::Var(_) | Expr::Const(_) => Ok(()),
            Expr::Slice(slice) => {
                self.expr(&slice.expr)?;
                self.maybe(slice.start.as_ref())?;
                self.maybe(slice.stop.as_ref())?;
                self.maybe(slice.step.as_ref())
            }
            Expr::UnaryOp(unary) => self.expr(&unary.expr),
            Expr::BinOp(binary) => {
                self.expr(&binary.left)?;
                self.expr(&binary.right)?;
                self.keep(
                    differs(binary.op, &binary.left, &binary.right),
                    &binary.left,
                );
                self.fold(binary.op, &binary.left, &binary.right)
            }
            Expr::Compare(compare) => {
                self.expr(&compare.expr)?;
                let mut others = compare.ops.iter();
                others.try_for_each(|other| self.expr(&other.expr))?;
                self.keep(unordered(compare), &compare.expr);
                Ok(())
            }
            Expr::IfExpr(choice) => {
                self.expr(&choice.test_expr)?;
                self.expr(&choice.true_expr)?;
                self.maybe(choice.false_expr.as_ref())
            }
            Expr::Filter(filter) => {
                self.maybe(filter.expr.as_ref())?;
                self.args(&filter.args)
            }
            Expr::Test(test) => {
                self.expr(&test.expr)?;
                self.args(&test.args)
            }
            Expr::GetAttr(attr) => self.expr(&attr.expr),
            Expr::GetItem(item) => {
                self.expr(&item.expr)?;
                self.expr(&item.subscript_expr)
            }
            Expr::Call(call) => {
                self.expr(&call.expr)?;
                self.args(&call.args)
            }
            Expr::List(list) => self.exprs(&list.items),
            Expr::Tuple(tuple) => self.exprs(&tuple.items),
            Expr::Map(map) => {
                self.exprs(&map.keys)?;
                self.exprs(&map.values)
            }
        }
    }

    /// Counts what folding an operator would produce. Its operands have been counted already.
    fn fold(
        &mut self,
        operator: BinOpKind,
        left: &Expr<'_>,
        right: &Expr<'_>,
    ) -> Result<(), EvalError> {
        if !matches!(
            operator,
            BinOpKind::Mul | BinOpKind::Concat | BinOpKind::Add
        ) {
            return Ok(());
        }
        let (Some(a), Some(b)) = (left.as_const(), right.as_const()) else {
            return Ok(());
        };
        let bytes = match operator {
            BinOpKind::Mul => {
                let times = |count: &Jinja, value: &Jinja| {
                    let count = u64::try_from(count.clone()).unwrap_or(1);
                    size(value).saturating_mul(count)
                };
                if a.is_number() && b.is_number() {
                    0
                } else if a.is_number() {
                    times(&a, &b)
                } else {
                    times(&b, &a)
                }
            }
            _ => size(&a) + size(&b),
        };
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            EvalError::too_large(
                "the expression makes more than 1 MiB of its constants alone; what must be \
                     larger can come from a command or an input",
            )
        })?;
        Ok(())
    }
}

/// Whether an operator between constants gives another value here than in minijinja.
fn differs(operator: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> bool {
    let ordering = matches!(
        operator,
        BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte
    );
    if !ordering && !matches!(operator, BinOpKind::Concat) {
        return false;
    }
    let (Some(left), Some(right)) = (left.as_const(), right.as_const()) else {
        return false;
    };
    match ordering {
        true => !order::comparable(&left, &right),
        // Texts are joined alike; what is made a text is written our way.
        false => left.as_str().is_none() || right.as_str().is_none(),
    }
}

/// Whether constants are compared between which there is no order.
fn unordered(compare: &Compare<'_>) -> bool {
    let Some(mut left) = compare.expr.as_const() else {
        return false;
    };
    for next in &compare.ops {
        let Some(right) = next.expr.as_const() else {
            return false;
        };
        let ordering = matches!(
            next.op,
            CompareOpKind::Lt | CompareOpKind::Lte | CompareOpKind::Gt | CompareOpKind::Gte
        );
        if ordering && !order::comparable(&left, &right) {
            return true;
        }
        left = right;
    }
    false
}

/// Where the first constant of a constant expression ends.
fn leaf_end(expr: &Expr<'_>) -> usize {
    let inner = match expr {
        Expr::UnaryOp(unary) => Some(&unary.expr),
        Expr::BinOp(binary) => Some(&binary.left),
        Expr::Compare(compare) => Some(&compare.expr),
        Expr::List(list) => list.items.first(),
        Expr::Tuple(tuple) => tuple.items.first(),
        Expr::Map(map) => map.values.first(),
        _ => None,
    };
    inner.map_or_else(|| expr.span().end_offset as usize, leaf_end)
}

/// The bytes of a constant, roughly.
fn size(value: &Jinja) -> u64 {
    match value.as_str() {
        Some(text) => text.len() as u64,
        None => value.len().unwrap_or(1) as u64 * 24,
    }
}
