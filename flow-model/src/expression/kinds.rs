//! Which kinds of value an expression can yield, as far as its text tells.

use std::ops::BitOr;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Filter, UnaryOpKind};
use minijinja::machinery::parse_expr;
use minijinja::value::ValueKind;

use super::raw::Unraw;
use super::{Dialect, jinja, js, pieces};
use crate::graph::Type;

/// A set of kinds of values: those that something can have when it is evaluated.
///
/// Where nothing is known it is [`Kinds::ANY`], so that who asks whether a value can fit says no
/// only where that is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// No value.
    pub const NULL: Kinds = Kinds(1);
    /// True or false.
    pub const BOOLEAN: Kinds = Kinds(1 << 1);
    /// A number without a fraction.
    pub const WHOLE: Kinds = Kinds(1 << 2);
    /// A number with a fraction.
    pub const FRACTION: Kinds = Kinds(1 << 3);
    /// A text that is a whole number.
    pub const DIGITS: Kinds = Kinds(1 << 4);
    /// Any other text.
    pub const WORDS: Kinds = Kinds(1 << 5);
    /// The text that stands for a secret.
    pub const SECRET: Kinds = Kinds(1 << 6);
    /// A list.
    pub const LIST: Kinds = Kinds(1 << 7);
    /// A map.
    pub const MAP: Kinds = Kinds(1 << 8);

    /// Any number.
    pub const NUMBER: Kinds = Kinds(Self::WHOLE.0 | Self::FRACTION.0);
    /// Any text that is no secret.
    pub const TEXT: Kinds = Kinds(Self::DIGITS.0 | Self::WORDS.0);
    /// Anything.
    pub const ANY: Kinds = Kinds((1 << 9) - 1);

    /// The kinds of the values of a type.
    #[must_use]
    pub const fn of(ty: Type) -> Self {
        match ty {
            Type::Any => Kinds::ANY,
            Type::String => Kinds::TEXT,
            Type::Number => Kinds::NUMBER,
            Type::Integer => Kinds::WHOLE,
            Type::Boolean => Kinds::BOOLEAN,
            Type::Array => Kinds::LIST,
            Type::Object => Kinds::MAP,
        }
    }

    /// The kind of a text.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let digits = text.strip_prefix('-').unwrap_or(text);
        match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Kinds::DIGITS,
            false => Kinds::WORDS,
        }
    }

    /// Whether a value can be of one of these kinds.
    #[must_use]
    pub const fn may_be(self, kinds: Kinds) -> bool {
        self.0 & kinds.0 != 0
    }

    /// Whether every value that there is, is of one of these kinds.
    #[must_use]
    pub const fn is_only(self, kinds: Kinds) -> bool {
        let there = self.0 & !Kinds::NULL.0;
        there != 0 && there & !kinds.0 == 0
    }

    /// What a value of these kinds is, with an article.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        if self.0 == Kinds::NULL.0 {
            "nothing"
        } else if self.is_only(Kinds::BOOLEAN) {
            "a boolean"
        } else if self.is_only(Kinds::FRACTION) {
            "a number with a fraction"
        } else if self.is_only(Kinds::NUMBER) {
            "a number"
        } else if self.is_only(Kinds::SECRET) {
            "a secret"
        } else if self.is_only(Kinds(Kinds::TEXT.0 | Kinds::SECRET.0)) {
            "text"
        } else if self.is_only(Kinds::LIST) {
            "a list"
        } else if self.is_only(Kinds::MAP) {
            "a map"
        } else {
            "something else"
        }
    }
}

impl BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// The kinds of value that a bare expression can yield, given those of what it reads.
///
/// ```
/// use flow_model::expression::{Dialect, Kinds, kinds};
/// let unknown = |_: &[String]| Kinds::ANY;
/// assert_eq!(kinds("'abc' ~ x", Dialect::Jinja, &unknown), Kinds::TEXT);
/// assert_eq!(kinds("x", Dialect::Jinja, &unknown), Kinds::ANY);
/// ```
pub fn kinds(text: &str, dialect: Dialect, known: &dyn Fn(&[String]) -> Kinds) -> Kinds {
    if text.trim().is_empty() || pieces::flaw(text, dialect).is_some() {
        return Kinds::ANY;
    }
    match dialect {
        Dialect::Jinja => match parse_expr(&Unraw::expression(text).text) {
            Ok(expr) => of(&expr, known),
            Err(_) => Kinds::ANY,
        },
        Dialect::Js => javascript(text, known),
    }
}

/// Of JavaScript only literals and paths are told.
fn javascript(text: &str, known: &dyn Fn(&[String]) -> Kinds) -> Kinds {
    let trimmed = text.trim();
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(trimmed) {
        return match value {
            serde_json::Value::Null => Kinds::NULL,
            serde_json::Value::Bool(_) => Kinds::BOOLEAN,
            serde_json::Value::Number(number) => of_number(number.as_f64()),
            serde_json::Value::String(text) => Kinds::of_text(&text),
            serde_json::Value::Array(_) => Kinds::LIST,
            serde_json::Value::Object(_) => Kinds::MAP,
        };
    }
    let quoted = trimmed
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    if let Some(inner) = quoted.filter(|inner| !inner.contains(['\'', '\\'])) {
        return Kinds::of_text(inner);
    }
    match js::expression(text).reads.as_slice() {
        [read] if !read.dynamic && text.get(read.range.clone()) == Some(trimmed) => {
            known(&read.path)
        }
        _ => Kinds::ANY,
    }
}

fn of_number(number: Option<f64>) -> Kinds {
    match number {
        Some(number) if number.fract() != 0.0 => Kinds::FRACTION,
        Some(_) => Kinds::WHOLE,
        None => Kinds::NUMBER,
    }
}

fn of(expr: &Expr<'_>, known: &dyn Fn(&[String]) -> Kinds) -> Kinds {
    match expr {
        Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => match jinja::fixed_path(expr) {
            Some(path) => known(&path),
            None => Kinds::ANY,
        },
        Expr::Const(constant) => of_constant(&constant.value),
        Expr::UnaryOp(unary) => match unary.op {
            UnaryOpKind::Not => Kinds::BOOLEAN,
            UnaryOpKind::Neg => match of(&unary.expr, known) {
                number if number.is_only(Kinds::NUMBER) => number,
                _ => Kinds::NUMBER,
            },
        },
        Expr::BinOp(binary) => match binary.op {
            BinOpKind::Concat => Kinds::TEXT,
            BinOpKind::ScAnd | BinOpKind::ScOr => {
                of(&binary.left, known) | of(&binary.right, known)
            }
            BinOpKind::Sub | BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem => Kinds::NUMBER,
            // These work on lists and texts as well.
            BinOpKind::Add | BinOpKind::Mul | BinOpKind::Pow => Kinds::ANY,
            BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte
            | BinOpKind::In => Kinds::BOOLEAN,
        },
        Expr::Compare(_) | Expr::Test(_) => Kinds::BOOLEAN,
        Expr::IfExpr(choice) => {
            let otherwise = choice.false_expr.as_ref();
            let otherwise = otherwise.map_or(Kinds::ANY, |expr| of(expr, known));
            of(&choice.true_expr, known) | otherwise
        }
        Expr::Filter(filter) => of_filter(filter, known),
        Expr::List(_) | Expr::Tuple(_) => Kinds::LIST,
        Expr::Map(_) => Kinds::MAP,
        Expr::Slice(_) | Expr::Call(_) => Kinds::ANY,
    }
}

fn of_constant(value: &minijinja::Value) -> Kinds {
    match value.kind() {
        ValueKind::None => Kinds::NULL,
        ValueKind::Bool => Kinds::BOOLEAN,
        ValueKind::Number if value.is_integer() => Kinds::WHOLE,
        ValueKind::Number => of_number(f64::try_from(value.clone()).ok()),
        ValueKind::String => value.as_str().map_or(Kinds::TEXT, Kinds::of_text),
        ValueKind::Seq => Kinds::LIST,
        ValueKind::Map => Kinds::MAP,
        _ => Kinds::ANY,
    }
}

/// What a filter yields, where that is the same whatever it is given.
fn of_filter(filter: &Filter<'_>, known: &dyn Fn(&[String]) -> Kinds) -> Kinds {
    match filter.name {
        "d" | "default" => {
            let inner = filter.expr.as_ref();
            let inner = inner.map_or(Kinds::ANY, |expr| of(expr, known));
            let other = match filter.args.first() {
                None => Kinds::WORDS,
                Some(CallArg::Pos(expr)) => of(expr, known),
                Some(_) => Kinds::ANY,
            };
            inner | other
        }
        "bool" => Kinds::BOOLEAN,
        "count" | "length" | "int" | "wordcount" | "find" | "rfind" => Kinds::WHOLE,
        "float" => Kinds::NUMBER,
        "capitalize" | "center" | "hash" | "indent" | "join" | "lower" | "lstrip"
        | "path_to_key" | "regex_replace" | "replace" | "rstrip" | "string" | "strip" | "title"
        | "tojson" | "trim" | "truncate" | "upper" | "urlencode" => Kinds::TEXT,
        "dictsort" | "lines" | "list" | "regex_findall" | "regex_search" | "sort" | "split"
        | "splitlines" | "unique" => Kinds::LIST,
        _ => Kinds::ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of an expression over `n`, a whole number, and `t`, a text; anything else is
    /// unknown.
    fn told(text: &str, dialect: Dialect) -> Kinds {
        kinds(text, dialect, &|path| match path {
            [name] if name == "n" => Kinds::WHOLE,
            [root, name] if root == "inputs" && name == "t" => Kinds::TEXT | Kinds::NULL,
            _ => Kinds::ANY,
        })
    }

    #[test]
    fn what_the_text_tells_is_known_and_nothing_else() {
        for (text, expected) in [
            ("5", Kinds::WHOLE),
            ("1.5", Kinds::FRACTION),
            ("'5'", Kinds::DIGITS),
            ("'abc'", Kinds::WORDS),
            ("none", Kinds::NULL),
            ("[1]", Kinds::LIST),
            ("{'a': n}", Kinds::MAP),
            ("n > 3", Kinds::BOOLEAN),
            ("n is defined", Kinds::BOOLEAN),
            ("not n", Kinds::BOOLEAN),
            ("n ~ 'a'", Kinds::TEXT),
            ("n", Kinds::WHOLE),
            ("inputs.t", Kinds::TEXT | Kinds::NULL),
            ("inputs['t']", Kinds::TEXT | Kinds::NULL),
            (
                "inputs.t | default(n)",
                Kinds::TEXT | Kinds::NULL | Kinds::WHOLE,
            ),
            ("inputs.t | int", Kinds::WHOLE),
            ("1 if n else 'a'", Kinds::WHOLE | Kinds::WORDS),
            ("n or [1]", Kinds::WHOLE | Kinds::LIST),
            ("inputs.t.x", Kinds::ANY),
            ("inputs[n]", Kinds::ANY),
            ("n + 1", Kinds::ANY),
            ("n * 'a'", Kinds::ANY),
            ("x | reverse", Kinds::ANY),
            ("range(3)", Kinds::ANY),
            ("n |", Kinds::ANY),
            ("", Kinds::ANY),
        ] {
            assert_eq!(told(text, Dialect::Jinja), expected, "{text}");
        }
    }

    #[cfg(feature = "js")]
    #[test]
    fn javascript_tells_its_literals_and_paths() {
        for (text, expected) in [
            ("5", Kinds::WHOLE),
            ("'abc'", Kinds::WORDS),
            ("\"5\"", Kinds::DIGITS),
            ("null", Kinds::NULL),
            ("{\"a\": 1}", Kinds::MAP),
            ("n", Kinds::WHOLE),
            ("inputs.t", Kinds::TEXT | Kinds::NULL),
            ("n + 1", Kinds::ANY),
            ("inputs.t.length", Kinds::ANY),
            ("n | tojson", Kinds::ANY),
            ("n(", Kinds::ANY),
        ] {
            assert_eq!(told(text, Dialect::Js), expected, "{text}");
        }
    }
}
