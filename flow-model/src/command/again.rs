//! Places in which a shell reads a value a second time, after its quotes are gone.
//!
//! As arithmetic or as the name of a variable, `a[$(…)]` runs what stands in it, however it is quoted.

use super::words::{Opened, Shape, Target, Words};
use super::{Bound, MARK, Misplaced, Place};

/// Who reads a command, and where in it.
pub(super) struct Around<'r> {
    pub(super) words: &'r Words,
    /// The text after the value, up to the end of everything.
    pub(super) rest: &'r str,
    /// The quote that is open.
    pub(super) quote: Option<char>,
    /// `[[…]]` is around it, and whether `${…}` is too.
    pub(super) test: Option<bool>,
    pub(super) is_typed: bool,
    pub(super) declared: &'r Declared,
}

/// Variables that have been declared to be more than text.
#[derive(Debug, Default)]
pub(super) struct Declared {
    numbers: Vec<String>,
    arrays: Vec<String>,
}

impl Declared {
    /// Takes note of a word that is over.
    pub(super) fn note(&mut self, words: &Words, word: &str) {
        let Some(name) = words.name().filter(|name| DECLARING.contains(name)) else {
            return;
        };
        let end = word.find(['=', '[', '+']).unwrap_or(word.len());
        let declared = &word[..end];
        if words.arguments().is_empty() || word.starts_with('-') {
            return;
        }
        if is_numeric(name, words) {
            self.numbers.push(declared.to_owned());
        }
        if words.has_option(&['a', 'A']) {
            self.arrays.push(declared.to_owned());
        }
    }
}

/// What limits a value there.
pub(super) enum Limit {
    Place(Place<'static>),
    Bound(Bound),
}

const DECLARING: &[&str] = &[
    "declare", "typeset", "local", "readonly", "export", "private", "integer", "float",
];
/// Comparisons of numbers.
const COMPARISONS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Variables that bash computes when they are set.
const COMPUTED: &[&str] = &["RANDOM", "SRANDOM", "OPTIND", "HISTCMD", "SECONDS"];
/// Those that zsh computes.
const COMPUTED_BY_ZSH: &[&str] = &[
    "BAUD",
    "COLUMNS",
    "DIRSTACKSIZE",
    "EGID",
    "ERRNO",
    "EUID",
    "FUNCNEST",
    "GID",
    "HISTSIZE",
    "KEYTIMEOUT",
    "LINES",
    "LISTMAX",
    "LOGCHECK",
    "MAILCHECK",
    "SAVEHIST",
    "SHLVL",
    "TMOUT",
    "UID",
];
/// Commands whose numbers zsh computes.
const COUNTING: &[&str] = &[
    "break", "bye", "continue", "exit", "logout", "repeat", "return", "shift",
];

fn number(misplaced: Misplaced) -> Option<Limit> {
    Some(Limit::Place(Place::Number(misplaced)))
}

fn name() -> Option<Limit> {
    Some(Limit::Place(Place::Name(Misplaced::NAME)))
}

fn nowhere(misplaced: Misplaced) -> Option<Limit> {
    Some(Limit::Place(Place::Nowhere(misplaced)))
}

fn bound(bound: Bound) -> Option<Limit> {
    Some(Limit::Bound(bound))
}

fn is_numeric(name: &str, words: &Words) -> bool {
    matches!(name, "integer" | "float") || words.has_option(&['i', 'E', 'F'])
}

/// Whether a format of `printf` has numbers in it, or takes a width from an argument.
fn computes(format: &str) -> bool {
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        let flags =
            after.trim_start_matches(|c: char| c.is_ascii_digit() || "+-# .'$lhjztLq".contains(c));
        let mut letters = flags.chars();
        if letters
            .next()
            .is_some_and(|letter| !"sbqcnQ%(".contains(letter))
        {
            return true;
        }
        rest = letters.as_str();
    }
    false
}

impl Around<'_> {
    pub(super) fn limit(&self) -> Option<Limit> {
        match self.words.target {
            Target::Descriptor => return number(Misplaced::DESCRIPTOR),
            Target::File => return bound(Bound::One(Misplaced::SEVERAL)),
            Target::Argument => {}
        }
        match self.words.opened {
            Opened::Word if self.is_typed && self.test.is_none() => {
                return nowhere(Misplaced::TYPED_QUALIFIER);
            }
            Opened::Array => {
                let begun = self.words.begun();
                let is_subscript = begun.starts_with('[') && !begun.contains("]=");
                return is_subscript.then_some(Limit::Place(Place::Number(Misplaced::SUBSCRIPT)));
            }
            Opened::Word | Opened::Group | Opened::Otherwise => {}
        }
        if let Some(in_parameter) = self.test {
            return self.in_test(in_parameter);
        }
        let Some(command) = self.words.name() else {
            return self.set();
        };
        match command {
            "let" => number(Misplaced::LET),
            "read" => self.read(),
            "unset" if self.words.has_option(&['f']) => None,
            "unset" => self.named(),
            "vared" | "getln" if self.is_typed => self.named(),
            "printf" => self.printf(),
            "print" if self.is_typed => self.printf(),
            "wait" if self.is_option('p') => self.named(),
            "wait" => self.option(Misplaced::OPTION),
            // Their options have words after them.
            "mapfile" | "readarray" if self.words.begun().is_empty() => {
                let is_over = self.words.arguments().iter().any(|word| word == "--");
                (!is_over).then_some(Limit::Bound(Bound::NoOption(Misplaced::OPTION)))
            }
            "getopts" if self.is_typed && self.words.arguments().len() == 1 => self.named(),
            "set" if self.is_typed && self.words.last().ends_with('A') => self.named(),
            "test" | "[" => self.operand(),
            name if self.is_typed && COUNTING.contains(&name) => number(Misplaced::TYPED_COUNT),
            name if DECLARING.contains(&name) => self.declaration(name),
            _ => None,
        }
    }

    /// The value of the option with this letter, or a part of it.
    fn is_option(&self, letter: char) -> bool {
        let begun = self.words.begun();
        let is_it = |word: &str| word.starts_with('-') && word.ends_with(letter);
        (begun.starts_with('-') && begun.contains(letter))
            || (is_it(self.words.last()) && !self.words.arguments().is_empty())
    }

    /// A value that must be no option.
    fn option(&self, misplaced: Misplaced) -> Option<Limit> {
        if !self.words.takes_options() {
            return None;
        }
        match self.words.begun() {
            "" => bound(Bound::NoOption(misplaced)),
            begun if begun.starts_with('-') => nowhere(misplaced),
            _ => None,
        }
    }

    /// A name, or the subscript after one.
    fn named(&self) -> Option<Limit> {
        let begun = self.words.begun();
        match Shape::of(
            begun
                .strip_prefix("-v")
                .or(begun.strip_prefix("-p"))
                .unwrap_or(begun),
        ) {
            Shape::Subscript => number(Misplaced::SUBSCRIPT),
            _ => name(),
        }
    }

    /// A word before the name of a command: it may set a variable.
    fn set(&self) -> Option<Limit> {
        match Shape::of(self.words.begun()) {
            Shape::Subscript => number(Misplaced::SUBSCRIPT),
            Shape::Assigned(name) => self.assigned(name),
            Shape::Name | Shape::Other => None,
        }
    }

    fn assigned(&self, name: &str) -> Option<Limit> {
        let is_computed = self.declared.numbers.iter().any(|it| it == name)
            || COMPUTED.contains(&name)
            || (self.is_typed && COMPUTED_BY_ZSH.contains(&name));
        match is_computed {
            true => number(Misplaced::INTEGER),
            false => bound(Bound::One(Misplaced::SEVERAL)),
        }
    }

    fn declaration(&self, command: &str) -> Option<Limit> {
        let begun = self.words.begun();
        let is_kind = self.words.has_option(&['a', 'A', 'i', 'n']);
        match Shape::of(begun) {
            Shape::Subscript => number(Misplaced::SUBSCRIPT),
            Shape::Assigned(_) if is_numeric(command, self.words) => number(Misplaced::INTEGER),
            Shape::Assigned(_) if self.words.has_option(&['n']) && command != "export" => name(),
            Shape::Assigned(it)
                if self.words.has_option(&['a', 'A'])
                    || self.declared.arrays.iter().any(|array| array == it) =>
            {
                Some(Limit::Place(Place::Harmless(Misplaced::ARRAY)))
            }
            Shape::Assigned(name) => self.assigned(name),
            Shape::Other if begun.starts_with(['-', '+']) => nowhere(Misplaced::OPTION),
            // Only zsh reads more than a name there.
            _ if matches!(command, "export" | "readonly") && !self.is_typed && !is_kind => None,
            Shape::Name | Shape::Other => name(),
        }
    }

    fn read(&self) -> Option<Limit> {
        let begun = self.words.begun();
        let last = self.words.last();
        let is_value = |letters: &[char]| {
            let follows = last.starts_with('-') && last.ends_with(letters);
            follows || (begun.starts_with('-') && begun.contains(letters))
        };
        let is_free = is_value(&['p', 'd', 'i']);
        if is_free || (is_value(&['n', 'N', 't', 'u']) && !self.is_typed) {
            return bound(Bound::One(Misplaced::SEVERAL));
        }
        self.named()
    }

    fn printf(&self) -> Option<Limit> {
        let arguments = self.words.arguments();
        if self.is_option('v') && self.words.takes_options() {
            return self.named();
        }
        let is_print = self.words.name() == Some("print");
        let mut formats = arguments.iter();
        let format = match is_print {
            true => formats.skip_while(|word| !word.ends_with('f')).nth(1),
            false => formats.find(|word| !word.starts_with('-') && *word != "--"),
        };
        // What follows `-v` is its name.
        let format = match arguments.first().is_some_and(|first| first == "-v") {
            true if !is_print => arguments
                .get(2..)
                .and_then(|rest| rest.iter().find(|it| *it != "--")),
            _ => format,
        };
        match format {
            Some(format) if self.is_typed && computes(format) => number(Misplaced::TYPED_FORMAT),
            Some(_) => None,
            None if self.is_typed && !is_print => bound(Bound::NoFormat(Misplaced::FORMAT)),
            None => self.option(Misplaced::FORMAT),
        }
    }

    /// In `[ … ]` and `test`, which read numbers as numbers.
    fn operand(&self) -> Option<Limit> {
        let arguments = self.words.arguments();
        let is_after_value = arguments.len() == 1 && is_value(&arguments[0]);
        let is_last = || matches!(self.next_word(), "" | "]" | ";" | "];" | "&&" | "||" | ")");
        match self.words.last() {
            "-v" => self.named(),
            "-t" if self.is_typed => number(Misplaced::TYPED_COUNT),
            // The value before may be `-v`.
            _ if is_after_value && is_last() => self.named(),
            _ => bound(Bound::Operand(Misplaced::SEVERAL)),
        }
    }

    fn in_test(&self, in_parameter: bool) -> Option<Limit> {
        let last = self.words.last();
        if last == "-v" {
            return self.named();
        }
        let compares = |word: &str| COMPARISONS.contains(&word) || is_value(word);
        let is_compared = match in_parameter {
            true => {
                let until = self.rest.split("]]").next().unwrap_or_default();
                until.split_whitespace().any(compares)
            }
            false => compares(self.next_word()),
        };
        if is_compared || compares(last) || (self.is_typed && last == "-t") {
            return number(Misplaced::COMPARED);
        }
        bound(Bound::Operand(Misplaced::SEVERAL))
    }

    /// The word after the present one.
    fn next_word(&self) -> &str {
        let mut quote = self.quote;
        let mut depth = 0_usize;
        let mut before = ' ';
        let mut letters = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, letter)) = letters.next() {
            match (quote, letter) {
                (None | Some('"'), '\\') => {
                    letters.next();
                }
                (Some(open), _) if open == letter => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"' | '`') => quote = Some(letter),
                (None, '(' | '{') if depth > 0 || before == '$' => depth += 1,
                (None, ')' | '}') if depth > 0 => depth -= 1,
                (None, _) if letter.is_whitespace() && depth == 0 => {
                    end = at;
                    break;
                }
                (None, ';' | '&' | '|' | ')') if depth == 0 => {
                    end = at;
                    break;
                }
                (None, _) => {}
            }
            before = letter;
        }
        let mut rest = self.rest[end..].trim_start_matches([' ', '\t']);
        while let Some(after) = rest.strip_prefix("\\\n") {
            rest = after.trim_start_matches([' ', '\t']);
        }
        if self.test.is_some() {
            rest = rest.trim_start();
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        &rest[..end]
    }
}

/// Whether a word begins with a value: it may be any operator.
fn is_value(word: &str) -> bool {
    word.starts_with(MARK)
}
