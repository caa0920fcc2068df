//! The words of a command as far as they are read, without their quotes.

use super::MARK;

/// Words before the name of a command.
const BEFORE_NAME: &[&str] = &[
    "!",
    "{",
    "-",
    "if",
    "then",
    "elif",
    "else",
    "while",
    "until",
    "do",
    "time",
    "coproc",
    "begin",
    "and",
    "or",
    "not",
    "command",
    "builtin",
    "noglob",
    "nocorrect",
];

/// What opened the parentheses that a command stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Opened {
    /// Nothing, or a substitution.
    #[default]
    Otherwise,
    /// A group, or what a function takes.
    Group,
    /// `name=(`.
    Array,
    /// A word right before them: zsh reads what they hold as code, other shells as a pattern.
    Word,
}

/// Where the next word goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Target {
    /// To the command.
    #[default]
    Argument,
    /// After `<` or `>`.
    File,
    /// After `>&`.
    Descriptor,
}

#[derive(Debug, Default)]
pub(super) struct Words {
    /// Those that are over. A value in them is its mark.
    done: Vec<String>,
    /// The one that is read.
    current: Option<String>,
    is_quoted: bool,
    /// Which of them is the name of the command.
    head: Option<usize>,
    pub(super) target: Target,
    pub(super) opened: Opened,
}

/// A word that is over.
pub(super) struct Over {
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

impl Words {
    pub(super) fn in_parentheses(opened: Opened) -> Words {
        Words {
            opened,
            ..Words::default()
        }
    }

    /// A quote begins, and a word with it.
    pub(super) fn quote(&mut self) {
        self.is_quoted = true;
        self.current.get_or_insert_default();
    }

    pub(super) fn letter(&mut self, letter: char) {
        self.current.get_or_insert_default().push(letter);
    }

    /// Begins anew, as behind `{`.
    pub(super) fn restart(&mut self) {
        *self = Words::in_parentheses(self.opened);
    }

    /// The word is over; gives it unless a redirection has it.
    pub(super) fn end(&mut self) -> Option<Over> {
        let text = self.current.take()?;
        let is_quoted = std::mem::take(&mut self.is_quoted);
        if std::mem::take(&mut self.target) != Target::Argument {
            return None;
        }
        let is_before = text.starts_with('-')
            || BEFORE_NAME.contains(&text.as_str())
            || matches!(Shape::of(&text), Shape::Assigned(_));
        if self.head.is_none() && !is_before {
            self.head = Some(self.done.len());
        }
        self.done.push(text.clone());
        Some(Over { text, is_quoted })
    }

    /// A redirection begins; a number right before it belongs to it.
    pub(super) fn redirect(&mut self) {
        let is_digit = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit());
        if self.current.as_ref().is_some_and(is_digit) && !self.is_quoted {
            self.current = None;
        }
    }

    /// What is read of the present word.
    pub(super) fn begun(&self) -> &str {
        self.current.as_deref().unwrap_or_default()
    }

    pub(super) fn is_begun(&self) -> bool {
        self.current.is_some()
    }

    /// The name of the command.
    pub(super) fn name(&self) -> Option<&str> {
        self.done.get(self.head?).map(String::as_str)
    }

    /// The words after its name that are over.
    pub(super) fn arguments(&self) -> &[String] {
        let from = self.head.map_or(self.done.len(), |head| head + 1);
        self.done.get(from..).unwrap_or_default()
    }

    /// The word before the present one.
    pub(super) fn last(&self) -> &str {
        self.done.last().map_or("", String::as_str)
    }

    /// Whether nothing but options stands between the name and the present word, and none of them is
    /// the last one.
    pub(super) fn takes_options(&self) -> bool {
        let is_option = |word: &String| word.starts_with('-') && word != "--" && word != "-";
        self.arguments().iter().all(is_option)
    }

    /// The letters of the options so far.
    pub(super) fn has_option(&self, letters: &[char]) -> bool {
        let mut options = self
            .arguments()
            .iter()
            .filter_map(|word| word.strip_prefix('-'));
        options.any(|option| option.contains(letters))
    }
}

/// What a word sets, as far as it is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape<'w> {
    /// A name so far.
    Name,
    /// `name[…`.
    Subscript,
    /// `name=…`, with that name.
    Assigned(&'w str),
    Other,
}

impl Shape<'_> {
    pub(super) fn of(word: &str) -> Shape<'_> {
        let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == MARK;
        let end = word
            .find(|letter| !is_of_name(letter))
            .unwrap_or(word.len());
        let (name, mut rest) = word.split_at(end);
        if rest.is_empty() {
            return Shape::Name;
        }
        if name.is_empty() {
            return Shape::Other;
        }
        if rest.starts_with('[') {
            let Some(after) = after_brackets(rest) else {
                return Shape::Subscript;
            };
            rest = after;
        }
        match rest.starts_with('=') || rest.starts_with("+=") {
            true => Shape::Assigned(name),
            false => Shape::Other,
        }
    }
}

/// What follows the brackets that begin a text, unless they are open.
pub(super) fn after_brackets(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let closes = text.find(|letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    closes.and_then(|at| text.get(at + 1..))
}
