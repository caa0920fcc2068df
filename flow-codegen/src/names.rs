//! Names of a definition as Rust identifiers.
//!
//! A state becomes a variant (`run-tests` → `RunTests`), a field or tool a lower-case identifier
//! (`dryRun` → `dry_run`), a workflow or task a module (`ci:build` → `ci_build`). Different names
//! may become one identifier; [`Names`] finds that.

use std::collections::HashMap;

use flow_model::diagnostic::{Diagnostic, NameClash, Sources};
use proc_macro2::{Ident, Span};

/// Words that cannot be identifiers, not even raw ones.
const NEVER: &[&str] = &["self", "Self", "super", "crate", "_"];

/// Words that need `r#`.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Two names that are one identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    noun: &'static str,
    first: Option<String>,
    second: String,
    identifier: String,
    line: Option<u32>,
}

impl Clash {
    /// The clash as a finding in the definition.
    #[must_use]
    pub fn report(&self, sources: &Sources) -> Diagnostic {
        let clash = NameClash {
            noun: self.noun,
            first: self.first.as_deref(),
            second: &self.second,
            identifier: &self.identifier,
            line: self.line,
        };
        Diagnostic::name_clash(&clash, sources)
    }
}

/// Identifiers of one scope.
#[derive(Debug)]
pub(crate) struct Names {
    noun: &'static str,
    taken: HashMap<String, Option<String>>,
}

impl Names {
    /// A scope for names of one kind in which generated code has names of its own.
    pub(crate) fn new(noun: &'static str, reserved: &[&str]) -> Self {
        let taken = reserved.iter().map(|name| ((*name).to_owned(), None));
        Names {
            noun,
            taken: taken.collect(),
        }
    }

    /// The identifier that a name becomes. One that is taken is reported, and made free with a
    /// number so that code can be generated all the same.
    pub(crate) fn claim(
        &mut self,
        name: &str,
        identifier: String,
        line: Option<u32>,
        clashes: &mut Vec<Clash>,
    ) -> Ident {
        let mut free = identifier.clone();
        if let Some(first) = self.taken.get(&identifier) {
            clashes.push(Clash {
                noun: self.noun,
                first: first.clone(),
                second: name.to_owned(),
                identifier: identifier.clone(),
                line,
            });
            let numbered = |number: u32| format!("{identifier}{number}");
            free = (2..)
                .map(numbered)
                .find(|name| !self.taken.contains_key(name))
                .unwrap_or(identifier);
        }
        self.taken.insert(free.clone(), Some(name.to_owned()));
        ident(&free)
    }
}

/// The name of the module that a workflow or task becomes.
///
/// ```
/// assert_eq!(flow_codegen::module_name("ci:build-all"), "ci_build_all");
/// ```
#[must_use]
pub fn module_name(name: &str) -> String {
    lower(name)
}

/// An identifier, raw if it has to be.
pub(crate) fn ident(name: &str) -> Ident {
    if NEVER.contains(&name) {
        Ident::new(&format!("{name}_"), Span::call_site())
    } else if KEYWORDS.contains(&name) {
        Ident::new_raw(name, Span::call_site())
    } else {
        Ident::new(name, Span::call_site())
    }
}

/// A name as a type or variant: `run-tests` → `RunTests`, `3d` → `S3d`.
pub(crate) fn upper(name: &str) -> String {
    let mut out = String::new();
    for word in words(name) {
        if out.ends_with(|c: char| c.is_ascii_digit())
            && word.starts_with(|c: char| c.is_ascii_digit())
        {
            out.push('_');
        }
        let shouted = word.len() > 1 && !word.contains(char::is_lowercase);
        let mut letters = word.chars();
        out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        match shouted {
            true => out.extend(letters.flat_map(char::to_lowercase)),
            false => out.extend(letters),
        }
    }
    match out.chars().next() {
        Some(first) if first.is_alphabetic() => out,
        _ => format!("S{out}"),
    }
}

/// A name as a field, method or module: `dryRun` → `dry_run`, `3d` → `_3d`.
pub(crate) fn lower(name: &str) -> String {
    let words: Vec<String> = words(name).map(|word| word.to_lowercase()).collect();
    let out = words.join("_");
    match out.chars().next() {
        Some(first) if first.is_alphabetic() => out,
        Some(_) => format!("_{out}"),
        None => "unnamed".to_owned(),
    }
}

/// The words of a name: runs of letters and digits, split before a capital after a small letter.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric());
    name.split(move |c| !part(c)).flat_map(|run| {
        let mut starts = vec![0];
        let letters: Vec<(usize, char)> = run.char_indices().collect();
        for pair in letters.windows(2) {
            if !pair[0].1.is_uppercase() && pair[1].1.is_uppercase() {
                starts.push(pair[1].0);
            }
        }
        starts.push(run.len());
        let pieces: Vec<&str> = starts.windows(2).map(|w| &run[w[0]..w[1]]).collect();
        pieces.into_iter().filter(|piece| !piece.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_upper_camel() {
        for (name, variant) in [
            ("build", "Build"),
            ("run_tests", "RunTests"),
            ("run-tests", "RunTests"),
            ("runTests", "RunTests"),
            ("HTTPGet", "HTTPGet"),
            ("WAIT_FOR_IT", "WaitForIt"),
            ("a", "A"),
            ("A", "A"),
            ("3d", "S3d"),
            ("v1.2", "V1_2"),
            ("v12", "V12"),
            ("steps[0].then[1]", "Steps0Then1"),
            ("größe", "Größe"),
            ("--", "S"),
            ("", "S"),
        ] {
            assert_eq!(upper(name), variant, "{name}");
        }
    }

    #[test]
    fn a_field_is_snake_case() {
        for (name, field) in [
            ("env", "env"),
            ("dryRun", "dry_run"),
            ("dry-run", "dry_run"),
            ("API_TOKEN", "api_token"),
            ("2fa", "_2fa"),
            ("a:b-c", "a_b_c"),
            ("", "unnamed"),
        ] {
            assert_eq!(lower(name), field, "{name}");
        }
    }

    #[test]
    fn keywords_are_raw_and_others_get_an_underscore() {
        assert_eq!(ident("type").to_string(), "r#type");
        assert_eq!(ident("self").to_string(), "self_");
        assert_eq!(ident("Self").to_string(), "Self_");
        assert_eq!(ident("kind").to_string(), "kind");
    }

    #[test]
    fn two_names_that_are_one_identifier_are_reported_and_told_apart() {
        let mut names = Names::new("state", &["Taken"]);
        let mut clashes = Vec::new();
        let mut claim = |name: &str, line| {
            names
                .claim(name, upper(name), Some(line), &mut clashes)
                .to_string()
        };
        assert_eq!(claim("a-b", 3), "AB");
        assert_eq!(claim("a_b", 7), "AB2");
        assert_eq!(claim("taken", 9), "Taken2");
        let found: Vec<_> = clashes
            .iter()
            .map(|c| (c.first.as_deref(), c.line))
            .collect();
        assert_eq!(found, [(Some("a-b"), Some(7)), (None, Some(9))]);
    }
}
