//! Commands as a shell reads them: the places in which values stand.
//!
//! Whoever quotes values and whoever says beforehand that a value cannot be quoted read a command
//! with the same eyes, so that neither knows a place that the other does not.

mod again;
mod lines;
mod reader;
mod words;

use std::fmt;

pub use lines::belonging;
pub use reader::read;

/// What is made of a command while it is read.
pub trait Reading {
    /// Why the reading stops.
    type Error;

    /// The number and the length of the value whose mark begins this text. Marks begin with
    /// [`MARK`].
    fn marked(&self, text: &str) -> Option<(usize, usize)>;

    /// Whether it is typed into a terminal: which shell reads it there is not known, and they differ in
    /// where quotes end.
    fn is_typed(&self) -> bool {
        false
    }

    /// Text of the command itself.
    fn text(&mut self, text: &str);

    /// What follows, but for here-documents, belongs to this command: it begins, or goes on after
    /// one inside it.
    fn command(&mut self, _command: Command) {}

    /// A value, and whether it is any word at all: an empty list is none.
    ///
    /// # Errors
    ///
    /// The value cannot stand there.
    fn value(&mut self, standing: &Standing<'_>) -> Result<bool, Self::Error>;

    /// The text of a here-document begins.
    fn document(&mut self, document: &HereDocument);

    /// The text of a here-document has been read, with or without values in it.
    ///
    /// # Errors
    ///
    /// The document would end elsewhere.
    fn document_ends(&mut self, document: &HereDocument, valued: bool) -> Result<(), Self::Error>;
}

/// One command of a command line, such as each of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its number, in the order they begin.
    pub number: usize,
    /// The one whose output it reads.
    pub reads: Option<usize>,
    /// The one that it stands in, inside `$(…)`, `(…)` or back-quotes.
    pub inside: Option<usize>,
}

/// What the mark of a value begins with.
pub const MARK: char = '\u{fdd0}';

/// Where a value stands.
#[derive(Clone, Debug)]
pub struct Standing<'d> {
    /// Its number.
    pub value: usize,
    /// What it stands in.
    pub place: Place<'d>,
    /// The letter after it.
    pub next: Option<char>,
    /// The back-quotes around it.
    pub backquotes: Option<Backquotes>,
    /// What it may not be, whatever it stands in.
    pub bound: Option<Bound>,
}

/// What a value may not be, because the shell would take it for something else than a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Several words.
    One(Misplaced),
    /// Several words; one that looks like an operator is quoted.
    Operand(Misplaced),
    /// What begins with `-`.
    NoOption(Misplaced),
    /// What begins with `-` or has a `%` in it.
    NoFormat(Misplaced),
}

impl Bound {
    /// Why these words cannot stand there.
    #[must_use]
    pub fn refuses(self, words: &[String]) -> Option<Misplaced> {
        let is_option = || words.first().is_some_and(|word| word.starts_with('-'));
        match self {
            Bound::One(why) | Bound::Operand(why) => (words.len() > 1).then_some(why),
            Bound::NoOption(why) => is_option().then_some(why),
            Bound::NoFormat(why) => {
                let is_format = words.iter().any(|word| word.contains('%'));
                (is_format || is_option()).then_some(why)
            }
        }
    }
}

/// A place for a value.
#[derive(Clone, Debug)]
pub enum Place<'d> {
    /// A word, or a part of one.
    Bare,
    /// Inside `"…"`.
    Double,
    /// Inside `'…'`.
    Single,
    /// Only whole numbers: it is computed.
    Number(Misplaced),
    /// Only letters, digits and `_`: it is, or is part of, the name of a variable.
    Name(Misplaced),
    /// Only words without any meaning to the shell.
    Comment,
    /// Only text without any meaning to the shell.
    Harmless(Misplaced),
    /// The text of a here-document, and whether a substitution stands before the value in it.
    Document {
        /// The here-document.
        document: &'d HereDocument,
        /// Only text without any meaning to the shell.
        nested: bool,
    },
    /// No value at all.
    Nowhere(Misplaced),
}

/// `` `…` ``.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backquotes {
    /// They hold backslashes, which they read before the command inside.
    pub backslashes: bool,
    /// Double quotes are around them.
    pub quoted: bool,
    /// A terminal reads them, whose shell may not know them.
    pub typed: bool,
}

/// Why a value cannot stand in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// The place, as in "in a comment".
    pub place: &'static str,
    /// The way out.
    pub help: &'static str,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value cannot stand {}", self.place)
    }
}

impl Misplaced {
    const COMMENT: Misplaced = Misplaced {
        place: "in a comment",
        help: "take it out of the comment",
    };
    const NESTED: Misplaced = Misplaced {
        place: "after a substitution in a here-document",
        help: "put the substitution in a variable first",
    };
    const BACKSLASHES: Misplaced = Misplaced {
        place: "inside back-quotes that hold backslashes",
        help: "write `$(…)`",
    };
    const QUOTED_BACKQUOTES: Misplaced = Misplaced {
        place: "inside back-quotes inside double quotes",
        help: "write `$(…)`",
    };
    const TYPED_BACKQUOTES: Misplaced = Misplaced {
        place: "inside back-quotes that are typed into a terminal, where fish does not know them",
        help: "write `$(…)`",
    };
    const AFTER_TYPED_BACKQUOTES: Misplaced = Misplaced {
        place: "after back-quotes with quotes in them that are typed into a terminal, where fish does \
                not know them",
        help: "write `$(…)`",
    };
    const TYPED_QUOTE: Misplaced = Misplaced {
        place: "after `\\'` inside single quotes that is typed into a terminal, where it is the end \
                of the quotes or, in fish, a quotation mark",
        help: "write that text in double quotes",
    };
    const TYPED_BANG: Misplaced = Misplaced {
        place: "after a `!` that is typed into a terminal, where it may stand for an earlier command",
        help: "write that text in single quotes",
    };
    const TYPED_COMMENT: Misplaced = Misplaced {
        place: "after a comment with a quote or a `<` in it that is typed into a terminal, where zsh \
                takes no comments",
        help: "take that out of the comment",
    };
    const ARITHMETIC: Misplaced = Misplaced {
        place: "in arithmetic unless it is a whole number",
        help: "make it one with `| int`, or leave it out of `((…))`",
    };
    const COMPARED: Misplaced = Misplaced {
        place: "in a comparison of numbers inside `[[…]]` unless it is a whole number",
        help: "compare with `[ … ]`, which computes nothing, or make it one with `| int`",
    };
    const SUBSCRIPT: Misplaced = Misplaced {
        place: "in the subscript of an array unless it is a whole number",
        help: "make it one with `| int`, or look it up in an expression instead",
    };
    const OFFSET: Misplaced = Misplaced {
        place: "in the offset or the length of `${name:…}` unless it is a whole number",
        help: "make it one with `| int`, or cut the text in an expression instead",
    };
    const LET: Misplaced = Misplaced {
        place: "in what `let` computes unless it is a whole number",
        help: "make it one with `| int`, or compute it in an expression instead",
    };
    const INTEGER: Misplaced = Misplaced {
        place: "as the value of a variable that the shell computes unless it is a whole number",
        help: "make it one with `| int`, or take another variable without `-i`",
    };
    const DESCRIPTOR: Misplaced = Misplaced {
        place: "after `>&` unless it is a whole number",
        help: "write `> FILE 2>&1` for a file",
    };
    const TYPED_COUNT: Misplaced = Misplaced {
        place: "where zsh computes a number, as after `exit`, in what is typed into a terminal, unless it \
                is a whole number",
        help: "make it one with `| int`",
    };
    const TYPED_FORMAT: Misplaced = Misplaced {
        place: "after a format with numbers that is typed into a terminal, where zsh computes them, unless \
                it is a whole number",
        help: "write `%s` for it",
    };
    const TYPED_QUALIFIER: Misplaced = Misplaced {
        place: "in parentheses right after a word that are typed into a terminal, where zsh reads them as \
                code",
        help: "leave it out of the parentheses",
    };
    const NAME: Misplaced = Misplaced {
        place: "as the name of a variable unless it is letters, digits and `_`",
        help: "choose a name that is written in the command, as with `case`",
    };
    const ARRAY: Misplaced = Misplaced {
        place: "behind `=` where an array is declared, which reads `(…)` in it as code",
        help: "write `name=({{ x }})`",
    };
    const OPTION: Misplaced = Misplaced {
        place: "where the shell may take it for an option when it begins with `-`",
        help: "write `--` before it",
    };
    const FORMAT: Misplaced = Misplaced {
        place: "as the format of `printf` or `print` when it begins with `-` or, in a terminal, has a `%` \
                in it",
        help: "write a format before it: `printf '%s' {{ x }}`",
    };
    const SEVERAL: Misplaced = Misplaced {
        place: "where one word is read when it is a list of several",
        help: "put it in double quotes",
    };
    const BRACKETS: Misplaced = Misplaced {
        place: "after quotes inside `$[…]`, which not every shell knows",
        help: "write `$((…))`",
    };
    const QUOTED_DOCUMENT: Misplaced = Misplaced {
        place: "in a here-document that is taken as it is when it is a secret",
        help: "write the delimiter without quotes",
    };
    const TYPED_DOCUMENT: Misplaced = Misplaced {
        place: "in a here-document of a terminal when it is a secret",
        help: "put it in a variable before",
    };
}

impl Standing<'_> {
    /// Why no value can stand here.
    #[must_use]
    pub fn refuses_all(&self) -> Option<Misplaced> {
        match (&self.place, self.backquotes) {
            (Place::Nowhere(misplaced), _) => Some(*misplaced),
            (_, Some(it)) if it.backslashes => Some(Misplaced::BACKSLASHES),
            _ => None,
        }
    }

    /// Why a value cannot stand here that may mean something to the shell.
    #[must_use]
    pub fn refuses_some(&self) -> Option<Misplaced> {
        match (&self.place, self.backquotes) {
            (Place::Comment, _) => Some(Misplaced::COMMENT),
            (Place::Harmless(misplaced), _) => Some(*misplaced),
            (Place::Document { nested: true, .. }, _) => Some(Misplaced::NESTED),
            (_, Some(it)) if it.quoted => Some(Misplaced::QUOTED_BACKQUOTES),
            (_, Some(it)) if it.typed => Some(Misplaced::TYPED_BACKQUOTES),
            _ => None,
        }
    }
}

/// A here-document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HereDocument {
    /// The word that ends it.
    pub delimiter: String,
    /// The text is taken as it is.
    pub quoted: bool,
    /// Tabs at the start of lines are dropped.
    pub tabs: bool,
    /// The number of the command that reads it.
    pub command: usize,
    depth: usize,
}

impl HereDocument {
    /// The line as the shell compares it.
    #[must_use]
    pub fn stripped<'l>(&self, line: &'l str) -> &'l str {
        if self.tabs {
            line.trim_start_matches('\t')
        } else {
            line
        }
    }

    /// Why no secret can stand in it; `is_typed` where a terminal reads the command.
    #[must_use]
    pub fn refuses_secrets(&self, is_typed: bool) -> Option<Misplaced> {
        match (self.quoted, is_typed) {
            (true, _) => Some(Misplaced::QUOTED_DOCUMENT),
            (false, true) => Some(Misplaced::TYPED_DOCUMENT),
            (false, false) => None,
        }
    }
}
