//! The names an expression may use without declaring them.
//!
//! The runtime registers exactly these names; a name missing here is a fault of the definition.

/// Filters, usable after `|` in both dialects.
#[rustfmt::skip]
pub const FILTERS: &[&str] = &[
    "abs", "attr", "batch", "bool", "capitalize", "center", "chain", "count", "d", "default",
    "dictsort", "e", "endswith", "escape", "filesizeformat", "find", "first", "float",
    "forceescape", "format", "groupby", "hash", "indent", "int", "items", "join", "last",
    "length", "lines", "list", "lower", "lstrip", "map", "max", "min", "parse_json",
    "path_to_key", "pprint", "random", "regex_findall", "regex_replace", "regex_search",
    "reject", "rejectattr", "replace", "reverse", "rfind", "round", "rstrip", "safe", "select",
    "selectattr", "sh", "slice", "sort", "split", "splitlines", "startswith", "string", "strip",
    "striptags", "sum", "title", "tojson", "trim", "truncate", "unique", "unquoted", "upper",
    "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr", "zip",
];

/// Filters that pass a text on as it is, or say what stands where there is none.
pub(super) const PASSING: &[&str] = &["d", "default", "safe", "sh", "string", "tojson", "unquoted"];

/// Tests, usable after `is` in Jinja and by name in `select` and its kin.
#[rustfmt::skip]
pub const TESTS: &[&str] = &[
    "!=", "<", "<=", "==", ">", ">=", "boolean", "callable", "defined", "divisibleby",
    "endingwith", "eq", "equalto", "escaped", "even", "false", "filter", "float", "ge",
    "greaterthan", "gt", "in", "int", "integer", "iterable", "le", "lessthan", "lower", "lt",
    "mapping", "ne", "none", "number", "odd", "safe", "sameas", "sequence", "startingwith",
    "string", "test", "true", "undefined", "upper",
];

/// Functions of the Jinja dialect.
#[rustfmt::skip]
pub const FUNCTIONS: &[&str] = &[
    "cycler", "debug", "dict", "joiner", "namespace", "now", "range", "uuid", "variable",
];

/// Functions of the JavaScript dialect beside the language's own.
#[rustfmt::skip]
pub const JS_FUNCTIONS: &[&str] = &["now", "uuid", "variable"];

/// Whether the first argument of a filter is a regular expression.
#[must_use]
pub fn takes_pattern(filter: &str) -> bool {
    matches!(filter, "regex_findall" | "regex_replace" | "regex_search")
}

/// Names the JavaScript language itself defines.
#[rustfmt::skip]
pub const JS_GLOBALS: &[&str] = &[
    "AggregateError", "Array", "ArrayBuffer", "BigInt", "BigInt64Array", "BigUint64Array",
    "Boolean", "DataView", "Date", "Error", "EvalError", "Float32Array", "Float64Array",
    "Function", "Infinity", "Int16Array", "Int32Array", "Int8Array", "Iterator", "JSON", "Map",
    "Math", "NaN", "Number", "Object", "Promise", "Proxy", "RangeError", "ReferenceError",
    "Reflect", "RegExp", "Set", "String", "Symbol", "SyntaxError", "TypeError", "URIError",
    "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef",
    "WeakSet", "arguments", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent",
    "escape", "eval", "globalThis", "isFinite", "isNaN", "parseFloat", "parseInt", "undefined",
    "unescape",
];

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]
    use super::*;

    #[test]
    fn every_list_is_sorted_and_without_repetition() {
        for list in [FILTERS, TESTS, FUNCTIONS, JS_FUNCTIONS, JS_GLOBALS] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{list:?}");
        }
    }

    #[test]
    fn every_filter_test_and_function_of_minijinja_is_known() {
        let environment = minijinja::Environment::new();
        let known = |kind: &str, name: &str| {
            let source = format!("'{name}' is {kind}");
            environment
                .compile_expression(&source)
                .unwrap()
                .eval(())
                .unwrap()
                .is_true()
        };
        let ours = [
            "center",
            "endswith",
            "filesizeformat",
            "find",
            "forceescape",
            "hash",
            "lstrip",
            "parse_json",
            "path_to_key",
            "random",
            "regex_findall",
            "regex_replace",
            "regex_search",
            "rfind",
            "rstrip",
            "sh",
            "splitlines",
            "startswith",
            "strip",
            "striptags",
            "truncate",
            "unquoted",
            "urlencode",
            "urlize",
            "wordcount",
            "wordwrap",
            "xmlattr",
        ];
        for name in FILTERS {
            assert_eq!(known("filter", name), !ours.contains(name), "{name}");
        }
        for name in TESTS {
            assert_eq!(known("test", name), *name != "callable", "{name}");
        }
        for (name, _) in environment.globals() {
            assert!(FUNCTIONS.contains(&name), "{name}");
        }
    }
}
