//! Reads a command as the shell would.

use super::again::{Around, Declared, Limit};
use super::words::{Opened, Shape, Target, Words, after_brackets};
use super::{Backquotes, Bound, Command, HereDocument, MARK, Misplaced, Place, Reading, Standing};

/// Reads a command in which marks stand for values.
///
/// # Errors
///
/// What the reading stops for.
pub fn read<R: Reading>(text: &str, reading: &mut R) -> Result<(), R::Error> {
    let mut reader = Reader::new(text, reading);
    while reader.advance()?.is_some() {}
    Ok(())
}

/// Words after which a command may begin.
const LEADING: &[&str] = &[
    "!", "{", "if", "then", "elif", "else", "while", "until", "do", "time", "coproc",
];

pub(super) struct Reader<'a, R> {
    text: &'a str,
    at: usize,
    reading: &'a mut R,
    /// What is open, outermost first.
    frames: Vec<Frame>,
    /// Here-documents whose text begins after the current line.
    pending: Vec<HereDocument>,
    /// The command that is read in each of the frames that hold commands, with the depth of that
    /// frame.
    commands: Vec<Begun>,
    /// How many commands have begun.
    begun: usize,
    /// How many frames are open around each `[[…]]` that is not over.
    tests: Vec<usize>,
    declared: Declared,
    /// Every `case` inside `$(…)` that is not over.
    cases: Vec<Case>,
    /// A word may begin here.
    fresh: bool,
    /// That word may be one of the grammar.
    leads: bool,
    /// After `function` and `coproc` such a word may be the one after the next.
    defines: bool,
    /// Why the places of what follows are not known for certain.
    lost: Option<Misplaced>,
    /// Why the value that comes next cannot stand.
    refused: Option<Misplaced>,
}

/// A command that is read.
struct Begun {
    depth: usize,
    command: Command,
    words: Words,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// The command itself.
    Command,
    /// `(…)`, or `$(…)`.
    Parentheses { substitution: bool },
    /// `` `…` ``, and whether it holds backslashes, which it reads before the command inside.
    Backquotes { backslashes: bool },
    /// `"…"`.
    Double,
    /// `'…'`.
    Single,
    /// `$'…'`.
    Ansi,
    /// `${…}`: where it opened, and whether inside double quotes.
    Parameter { from: usize, quoted: bool },
    /// `$((…))` or `((…))`, and how many parentheses are open.
    Arithmetic { depth: usize, substitution: bool },
    /// `$[…]`, and how many brackets are open.
    Brackets { depth: usize },
}

impl Begun {
    /// It goes on behind parentheses.
    fn goes_on(&mut self, opened: Opened) {
        match opened {
            Opened::Otherwise => {}
            Opened::Array => self.words.letter(')'),
            // A function, whose body follows, or a pattern among the words of a command.
            Opened::Word if self.words.name().is_none() => self.words.restart(),
            Opened::Word => self.words.letter(')'),
            Opened::Group => self.words.restart(),
        }
    }
}

/// A `case` inside `$(…)`: the `)` of a pattern could be taken for the end of the substitution.
struct Case {
    /// How many frames are open around it.
    depth: usize,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The word comes that is compared.
    Subject,
    /// `in` comes.
    In,
    /// A pattern or `esac` comes.
    Pattern,
    /// A pattern within `(…)`.
    Enclosed,
    /// What is done for a pattern.
    Body,
}

impl<'a, R: Reading> Reader<'a, R> {
    pub(super) fn new(text: &'a str, reading: &'a mut R) -> Self {
        let mut reader = Reader {
            text,
            at: 0,
            reading,
            frames: vec![Frame::Command],
            pending: Vec::new(),
            commands: Vec::new(),
            begun: 0,
            tests: Vec::new(),
            declared: Declared::default(),
            cases: Vec::new(),
            fresh: true,
            leads: true,
            defines: false,
            lost: None,
            refused: None,
        };
        reader.begin(false);
        reader
    }

    /// Reads what comes next, and gives it; `None` at the end.
    pub(super) fn advance(&mut self) -> Result<Option<&'a str>, R::Error> {
        let from = self.at;
        if from == self.text.len() {
            return Ok(None);
        }
        self.step()?;
        self.leave_closed();
        Ok(Some(&self.text[from..self.at]))
    }

    /// Whether something is open here: quotes, parentheses.
    pub(super) fn is_inside(&self) -> bool {
        self.frames.len() > 1
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn top(&self) -> Frame {
        self.frames.last().copied().unwrap_or(Frame::Command)
    }

    /// Whether a value stands `ahead` bytes further.
    fn mark_at(&self, ahead: usize) -> bool {
        let text = self.text.get(self.at + ahead..);
        text.is_some_and(|text| self.reading.marked(text).is_some())
    }

    /// Copies so many bytes.
    fn copy(&mut self, bytes: usize) {
        let mut end = (self.at + bytes).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.reading.text(&self.text[self.at..end]);
        self.at = end;
    }

    fn open(&mut self, frame: Frame, bytes: usize) {
        self.copy(bytes);
        self.frames.push(frame);
        if let Frame::Parentheses { .. } | Frame::Backquotes { .. } = frame {
            let opened = self.opened(frame);
            self.begin(false);
            if let Some(inner) = self.commands.last_mut() {
                inner.words = Words::in_parentheses(opened);
            }
        }
    }

    /// What a frame stands behind.
    fn opened(&self, frame: Frame) -> Opened {
        let words = self.commands.last().map(|begun| &begun.words);
        match (frame, words) {
            (
                Frame::Parentheses {
                    substitution: false,
                },
                Some(words),
            ) if words.is_begun() => {
                let begun = words.begun();
                match begun.ends_with('=') && matches!(Shape::of(begun), Shape::Assigned(_)) {
                    true => Opened::Array,
                    false => Opened::Word,
                }
            }
            (
                Frame::Parentheses {
                    substitution: false,
                },
                _,
            ) => Opened::Group,
            _ => Opened::Otherwise,
        }
    }

    /// Another command begins, which may read what the one before it writes.
    fn begin(&mut self, piped: bool) {
        let depth = self.frames.len();
        self.end_word();
        let before = self.commands.pop_if(|begun| begun.depth == depth);
        let opened = before.as_ref().map(|begun| begun.words.opened);
        let command = Command {
            number: self.begun,
            reads: before.filter(|_| piped).map(|it| it.command.number),
            inside: self.commands.last().map(|it| it.command.number),
        };
        self.begun += 1;
        self.commands.push(Begun {
            depth,
            command,
            words: Words::in_parentheses(opened.unwrap_or_default()),
        });
        self.reading.command(command);
        self.leads = true;
    }

    /// Goes on with what is around a frame that was closed.
    fn leave_closed(&mut self) {
        let depth = self.frames.len();
        self.cases.retain(|case| case.depth <= depth);
        self.tests.retain(|test| *test <= depth);
        let first = self.commands.iter().position(|begun| begun.depth > depth);
        let closed = first.and_then(|first| self.commands.drain(first..).next());
        if let (Some(closed), Some(around)) = (closed, self.commands.last_mut()) {
            around.goes_on(closed.words.opened);
            self.reading.command(around.command);
            self.leads = self.fresh;
        }
    }

    fn words(&mut self) -> Option<&mut Words> {
        self.commands.last_mut().map(|begun| &mut begun.words)
    }

    /// The word that is read is over.
    fn end_word(&mut self) {
        let depth = self.frames.len();
        let Some(begun) = self.commands.last_mut().filter(|it| it.depth == depth) else {
            return;
        };
        let Some(word) = begun.words.end() else {
            return;
        };
        self.declared.note(&begun.words, &word.text);
        match word.text.as_str() {
            _ if word.is_quoted => {}
            "[[" => self.tests.push(depth),
            "]]" => {
                self.tests.pop_if(|test| *test == depth);
                begun.words.restart();
            }
            "{" => begun.words.restart(),
            _ => {}
        }
    }

    /// Takes note of a letter that is no value, for the word it belongs to.
    fn note(&mut self, letter: char) {
        let rest = self.rest();
        let escaped = || rest[1..].chars().next().filter(|_| !self.mark_at(1));
        let escapes = (letter == '\\').then(escaped).flatten();
        let after = self.text[..self.at].chars().next_back();
        let (top, fresh) = (self.top(), self.fresh);
        if let Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. } = top {
            match letter {
                '&' | '|' if matches!(after, Some('<' | '>')) => {
                    let is_descriptor = letter == '&' && after == Some('>');
                    if let (true, Some(words)) = (is_descriptor, self.words()) {
                        words.target = Target::Descriptor;
                    }
                    return;
                }
                '<' | '>' => {
                    if let Some(words) = self.words() {
                        words.redirect();
                    }
                    self.end_word();
                    let is_document = rest.starts_with("<<") && !rest.starts_with("<<<");
                    if let Some(words) = self.words() {
                        words.target = match is_document {
                            true => Target::Argument,
                            false => Target::File,
                        };
                    }
                    return;
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' => return self.end_word(),
                '(' | ')' => return,
                '#' if fresh => return,
                _ => {}
            }
        }
        let Some(words) = self.words() else {
            return;
        };
        match (top, letter) {
            (Frame::Parameter { .. } | Frame::Arithmetic { .. } | Frame::Brackets { .. }, _)
            | (Frame::Single | Frame::Ansi, '\'')
            | (Frame::Double, '"')
            | (Frame::Backquotes { .. }, '`') => {}
            (Frame::Single | Frame::Ansi, _) => words.letter(letter),
            (_, '\\') => {
                if escapes == Some('\n') {
                    return;
                }
                words.quote();
                if let Some(escaped) = escapes {
                    words.letter(escaped);
                }
            }
            (Frame::Double, _) => words.letter(letter),
            (_, '\'' | '"') => words.quote(),
            _ => words.letter(letter),
        }
    }

    /// The `case` whose words are read here.
    fn case(&mut self) -> Option<&mut Case> {
        let depth = self.frames.len();
        self.cases.last_mut().filter(|case| case.depth == depth)
    }

    /// A word begins. It may be one of the grammar when all of it is plain.
    fn word(&mut self, plain: Option<&str>) {
        let leads = self.leads;
        self.leads = match plain {
            Some("-p" | "--") => leads,
            Some(word) => LEADING.contains(&word),
            None => false,
        };
        let leads = leads || self.defines;
        self.defines |= matches!(plain, Some("coproc" | "function"));
        if let Some(case) = self.case() {
            let next = match (case.stage, plain) {
                (Stage::Subject, _) => Some(Stage::In),
                (Stage::In, Some("in")) => Some(Stage::Pattern),
                (Stage::Pattern | Stage::Body, Some("esac"))
                    if leads || case.stage == Stage::Pattern =>
                {
                    self.cases.pop();
                    return;
                }
                (Stage::Body, _) => None,
                (Stage::In | Stage::Pattern | Stage::Enclosed, _) => {
                    self.lost = Some(OPEN_PATTERN);
                    return;
                }
            };
            if let Some(next) = next {
                case.stage = next;
                return;
            }
        }
        if plain == Some("case") && leads && self.substituting() {
            self.cases.push(Case {
                depth: self.frames.len(),
                stage: Stage::Subject,
            });
        }
    }

    /// The word that begins here, if nothing in it is quoted or expanded.
    fn plain_word(&self) -> Option<&'a str> {
        let rest = self.rest();
        let ends = |letter: char| " \t\n;&|<>()'\"\\$`".contains(letter) || letter == MARK;
        let end = rest.find(ends).unwrap_or(rest.len());
        let is_over = !rest[end..].starts_with(['\'', '"', '\\', '$', '`', MARK]);
        is_over.then(|| &rest[..end])
    }

    fn close(&mut self) {
        self.copy(1);
        if self.frames.len() > 1 {
            self.frames.pop();
        }
    }

    fn step(&mut self) -> Result<(), R::Error> {
        if let Some((index, length)) = self.reading.marked(self.rest()) {
            return self.value(index, length);
        }
        let Some(letter) = self.rest().chars().next() else {
            return Ok(());
        };
        self.note(letter);
        if letter == '!' && self.recalls() {
            self.lost = Some(Misplaced::TYPED_BANG);
        }
        match self.top() {
            Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. } => {
                self.command(letter)?;
            }
            Frame::Single => match letter {
                '\'' => {
                    let inside = self.text[..self.at].trim_end_matches('\\');
                    if (self.at - inside.len()) % 2 == 1 && self.reading.is_typed() {
                        self.lost = Some(Misplaced::TYPED_QUOTE);
                    }
                    self.close();
                }
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Ansi => match letter {
                '\'' => self.close(),
                '\\' => {
                    if self.rest().starts_with(r"\'") {
                        self.lost = Some(uncertain("after a quote escaped inside `$'…'`"));
                    }
                    self.escaped("inside `$'…'`");
                }
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Double => match letter {
                '"' => self.close(),
                '\\' if self.mark_at(1) => self.literal_before_value(),
                '\\' => self.copy(2),
                '$' => self.dollar(true),
                '`' => self.backquote(),
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Parameter { quoted, .. } => match letter {
                '}' => self.close(),
                '\\' => self.escaped("after a backslash"),
                '\'' if !quoted => self.open(Frame::Single, 1),
                '"' => self.open(Frame::Double, 1),
                '$' => self.dollar(quoted),
                '`' => self.backquote(),
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Arithmetic {
                depth,
                substitution,
            } => match letter {
                '(' => self.arithmetic(depth + 1, substitution),
                ')' => self.arithmetic(depth - 1, substitution),
                '\\' => self.escaped("after a backslash"),
                '\'' => self.open(Frame::Single, 1),
                '"' => self.open(Frame::Double, 1),
                '$' => self.dollar(false),
                '`' => self.backquote(),
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Brackets { depth } => {
                if matches!(letter, '\\' | '\'' | '"' | '`') {
                    self.lost = Some(Misplaced::BRACKETS);
                }
                match letter {
                    '[' => self.brackets(depth + 1),
                    ']' => self.brackets(depth - 1),
                    '\\' => self.escaped("after a backslash"),
                    '$' => self.dollar(false),
                    _ => self.copy(letter.len_utf8()),
                }
            }
        }
        Ok(())
    }

    /// Whether the shell of a terminal may take the `!` here for the beginning of an earlier command, or
    /// for a word on that, and read on behind it in its own way.
    fn recalls(&self) -> bool {
        let is_quoted = matches!(self.top(), Frame::Single | Frame::Ansi);
        let next = self.rest()[1..].chars().next();
        let begins = next.is_some_and(|next| !next.is_whitespace() && !matches!(next, '=' | '('));
        self.reading.is_typed() && !is_quoted && begins
    }

    fn arithmetic(&mut self, depth: usize, substitution: bool) {
        self.copy(1);
        self.frames.pop();
        if depth > 0 {
            self.frames.push(Frame::Arithmetic {
                depth,
                substitution,
            });
        } else {
            self.fresh = !substitution;
        }
    }

    fn brackets(&mut self, depth: usize) {
        self.copy(1);
        self.frames.pop();
        if depth > 0 {
            self.frames.push(Frame::Brackets { depth });
        } else {
            self.fresh = false;
        }
    }

    /// Copies a backslash and what it escapes, which is no value.
    fn escaped(&mut self, place: &'static str) {
        if self.mark_at(1) {
            let help = "put it in double quotes";
            self.refused = Some(Misplaced { place, help });
            self.copy(1);
            return;
        }
        let next = self.rest()[1..].chars().next().map_or(0, char::len_utf8);
        self.copy(1 + next);
    }

    /// `\` or `$` right before a value is meant as itself.
    fn literal_before_value(&mut self) {
        self.reading.text("\\");
        self.copy(1);
    }

    fn dollar(&mut self, quoted: bool) {
        let rest = self.rest();
        if self.mark_at(1) {
            self.literal_before_value();
            self.fresh = false;
        } else if rest.starts_with("$((") {
            let substitution = true;
            self.open(
                Frame::Arithmetic {
                    depth: 2,
                    substitution,
                },
                3,
            );
        } else if rest.starts_with("$(") {
            self.open(Frame::Parentheses { substitution: true }, 2);
            self.fresh = true;
        } else if rest.starts_with("$[") {
            self.open(Frame::Brackets { depth: 1 }, 2);
            self.fresh = false;
        } else if rest.starts_with("${") {
            let from = self.at + 2;
            self.open(Frame::Parameter { from, quoted }, 2);
            self.fresh = false;
        } else if rest.starts_with("$'") && !quoted {
            self.open(Frame::Ansi, 2);
            self.fresh = false;
        } else {
            self.copy(1);
            self.fresh = false;
        }
    }

    fn backquote(&mut self) {
        let inside = |frame: &Frame| matches!(frame, Frame::Backquotes { .. });
        if let Some(open) = self.frames.iter().rposition(inside) {
            self.frames.truncate(open.max(1));
            self.copy(1);
            self.fresh = false;
            return;
        }
        let body = &self.rest()[1..];
        let (mut backslashes, mut quotes) = (false, false);
        let mut letters = body.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '`' => break,
                '\\' => {
                    backslashes = true;
                    letters.next();
                }
                '\'' | '"' => quotes = true,
                _ => {}
            }
        }
        if (backslashes || quotes) && self.reading.is_typed() {
            self.lost = Some(Misplaced::AFTER_TYPED_BACKQUOTES);
        }
        self.open(Frame::Backquotes { backslashes }, 1);
        self.fresh = true;
    }

    fn command(&mut self, letter: char) -> Result<(), R::Error> {
        let rest = self.rest();
        let is_word = !" \t\n;&|<>()#".contains(letter) && !rest.starts_with("\\\n");
        if self.fresh && is_word {
            self.word(self.plain_word());
        }
        match letter {
            '\\' => {
                let continues = rest.starts_with("\\\n");
                self.escaped("after a backslash");
                self.fresh &= continues;
            }
            '\'' => {
                self.open(Frame::Single, 1);
                self.fresh = false;
            }
            '"' => {
                self.open(Frame::Double, 1);
                self.fresh = false;
            }
            '`' => self.backquote(),
            '$' => self.dollar(false),
            '(' if self.case().is_some_and(|case| case.stage == Stage::Pattern) => {
                if let Some(case) = self.case() {
                    case.stage = Stage::Enclosed;
                }
                let substitution = false;
                self.open(Frame::Parentheses { substitution }, 1);
                self.fresh = true;
            }
            '(' if rest.starts_with("((") => self.open(
                Frame::Arithmetic {
                    depth: 2,
                    substitution: false,
                },
                2,
            ),
            '(' => {
                self.open(
                    Frame::Parentheses {
                        substitution: false,
                    },
                    1,
                );
                self.fresh = true;
            }
            ')' => {
                match self.top() {
                    Frame::Parentheses { substitution } => {
                        if substitution && self.case().is_some() {
                            self.lost = Some(OPEN_PATTERN);
                        }
                        self.close();
                        self.fresh = !substitution;
                        self.cases.retain(|case| case.depth <= self.frames.len());
                        if let Some(case) = self.case()
                            && case.stage == Stage::Enclosed
                        {
                            case.stage = Stage::Body;
                        }
                    }
                    _ => {
                        self.copy(1);
                        self.fresh = true;
                        self.begin(false);
                    }
                };
            }
            '<' if rest.starts_with("<<<") => {
                self.copy(3);
                self.fresh = true;
            }
            '<' if rest.starts_with("<<") => self.here_document()?,
            '#' if self.fresh => self.comment()?,
            '\n' => {
                self.copy(1);
                self.fresh = true;
                self.documents()?;
                self.begin(false);
            }
            ';' | '&' | '|' => {
                self.separator(letter);
                self.fresh = true;
            }
            ' ' | '\t' | '<' | '>' => {
                self.copy(1);
                self.fresh = true;
            }
            other => {
                self.copy(other.len_utf8());
                self.fresh = false;
            }
        }
        Ok(())
    }

    /// Reads what stands between two commands, or is part of a redirection.
    fn separator(&mut self, letter: char) {
        let rest = self.rest();
        let redirects = self.text[..self.at].ends_with(['<', '>']);
        match letter {
            '&' | '|' if redirects => self.copy(1),
            '&' if rest.starts_with("&>") => self.copy(1),
            '|' if rest.starts_with("||") => {
                self.copy(2);
                self.begin(false);
            }
            '|' => {
                self.copy(if rest.starts_with("|&") { 2 } else { 1 });
                self.begin(true);
            }
            _ => {
                if let Some(case) = self.case()
                    && case.stage == Stage::Body
                    && (rest.starts_with(";;") || rest.starts_with(";&"))
                {
                    case.stage = Stage::Pattern;
                }
                self.copy(1);
                self.begin(false);
            }
        }
    }

    fn substituting(&self) -> bool {
        let substitution = Frame::Parentheses { substitution: true };
        self.frames.contains(&substitution)
    }

    fn comment(&mut self) -> Result<(), R::Error> {
        let quoted = self.backquotes().is_some();
        while let Some(letter) = self.rest().chars().next() {
            if letter == '\n' || (letter == '`' && quoted) {
                break;
            }
            match self.reading.marked(self.rest()) {
                Some((value, length)) => {
                    let standing = Standing {
                        value,
                        place: Place::Comment,
                        next: None,
                        backquotes: None,
                        bound: None,
                    };
                    self.reading.value(&standing)?;
                    self.at += length;
                }
                None => {
                    if matches!(letter, '\'' | '"' | '`' | '<') && self.reading.is_typed() {
                        self.lost = Some(Misplaced::TYPED_COMMENT);
                    }
                    self.copy(letter.len_utf8());
                }
            }
        }
        Ok(())
    }

    /// Reads `<<WORD`.
    fn here_document(&mut self) -> Result<(), R::Error> {
        self.copy(2);
        let tabs = self.rest().starts_with('-');
        if tabs {
            self.copy(1);
        }
        while self.rest().starts_with([' ', '\t']) {
            self.copy(1);
        }
        let mut delimiter = String::new();
        let mut quoted = false;
        let mut quote = None;
        while let Some(letter) = self.rest().chars().next() {
            if let Some((value, length)) = self.reading.marked(self.rest()) {
                let place = Place::Nowhere(Misplaced {
                    place: "in the delimiter of a here-document",
                    help: "write a fixed word",
                });
                self.put(value, length, place)?;
                continue;
            }
            match (quote, letter) {
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    quoted = true;
                }
                (Some(open), _) if open == letter => quote = None,
                (None, '\\') => {
                    quoted = true;
                    self.copy(1);
                    let Some(next) = self.rest().chars().next() else {
                        break;
                    };
                    delimiter.push(next);
                    self.copy(next.len_utf8());
                    continue;
                }
                (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') => break,
                _ => delimiter.push(letter),
            }
            self.copy(letter.len_utf8());
        }
        self.fresh = false;
        self.pending.push(HereDocument {
            delimiter,
            quoted,
            tabs,
            command: self.commands.last().map_or(0, |it| it.command.number),
            depth: self.frames.len(),
        });
        Ok(())
    }

    /// Reads the here-documents that begin on this line.
    fn documents(&mut self) -> Result<(), R::Error> {
        let here = self.frames.len();
        if self.pending.iter().any(|document| document.depth != here) {
            self.lost = Some(uncertain(
                "after a here-document that another command substitution interrupts",
            ));
            self.pending.clear();
        }
        for document in std::mem::take(&mut self.pending) {
            self.document(&document)?;
        }
        Ok(())
    }

    fn document(&mut self, document: &HereDocument) -> Result<(), R::Error> {
        // The text ends at the delimiter, whatever stands in it.
        let mut end = self.at;
        let mut after = self.text.len();
        for line in self.text[self.at..].split_inclusive('\n') {
            if document.stripped(line.strip_suffix('\n').unwrap_or(line)) == document.delimiter {
                after = end + line.len();
                break;
            }
            end += line.len();
        }
        self.reading.document(document);
        let mut nested = false;
        let mut valued = false;
        while self.at < end {
            if let Some((index, length)) = self.reading.marked(self.rest()) {
                valued = true;
                let place = self.document_place(document, nested);
                self.put(index, length, place)?;
                continue;
            }
            if let (false, Some(length)) = (document.quoted, self.plain_arithmetic()) {
                valued |= self.arithmetic_in(document, nested, length)?;
                continue;
            }
            let letter = self.rest().chars().next().unwrap_or('\n');
            match letter {
                '\\' | '$' if !document.quoted && self.mark_at(1) => self.literal_before_value(),
                '\\' if !document.quoted => {
                    let next = self.rest()[1..].chars().next().map_or(0, char::len_utf8);
                    self.copy(1 + next);
                }
                '$' | '`' if !document.quoted => {
                    nested |= !self.simple();
                    self.copy(1);
                }
                other => self.copy(other.len_utf8()),
            }
        }
        self.reading.document_ends(document, valued)?;
        self.copy(after - end);
        self.fresh = true;
        Ok(())
    }

    /// Whether the expansion that begins here plainly ends again, without anything inside.
    fn simple(&self) -> bool {
        let rest = self.rest();
        let (body, close) = if let Some(body) = rest.strip_prefix("${") {
            (body, '}')
        } else if let Some(body) = rest.strip_prefix("$(") {
            (body, ')')
        } else if let Some(body) = rest.strip_prefix("$[") {
            (body, ']')
        } else {
            return !rest.starts_with('`');
        };
        let inside = |letter: char| "(){}[]'\"\\`$#\n".contains(letter) || letter == MARK;
        body.find(inside)
            .is_some_and(|at| body[at..].starts_with(close))
    }

    /// The length of `$((…))` that begins here, where it is nothing but numbers, names and
    /// operators: every shell finds the same end of it.
    fn plain_arithmetic(&self) -> Option<usize> {
        let rest = self.rest();
        let mut at = rest.starts_with("$((").then_some("$((".len())?;
        let mut depth = 2;
        loop {
            let here = &rest[at..];
            if let Some((_, length)) = self.reading.marked(here) {
                at += length;
                continue;
            }
            let name = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            match here.chars().next()? {
                '(' => depth += 1,
                ')' if depth == 2 => return here.starts_with("))").then_some(at + 2),
                ')' => depth -= 1,
                '$' if name(&here[1..]) => {}
                letter if letter.is_ascii_alphanumeric() => {}
                letter if "_ \t+-*/%<>=!&|^~?:,".contains(letter) => {}
                _ => return None,
            }
            at += 1;
        }
    }

    /// Reads so much arithmetic in a here-document; gives whether values stand in it.
    fn arithmetic_in(
        &mut self,
        document: &HereDocument,
        nested: bool,
        length: usize,
    ) -> Result<bool, R::Error> {
        let end = self.at + length;
        let mut valued = false;
        while self.at < end {
            let Some((index, length)) = self.reading.marked(self.rest()) else {
                self.copy(1);
                continue;
            };
            valued = true;
            let place = match self.document_place(document, nested) {
                Place::Document { nested: false, .. } => Place::Number(Misplaced::ARITHMETIC),
                other => other,
            };
            self.put(index, length, place)?;
        }
        Ok(valued)
    }

    fn document_place<'d>(&self, document: &'d HereDocument, nested: bool) -> Place<'d> {
        if let Some(lost) = self.lost {
            return Place::Nowhere(lost);
        }
        if self.backquotes().is_some() {
            return Place::Nowhere(Misplaced {
                place: "in a here-document inside back-quotes",
                help: "write `$(…)`",
            });
        }
        if !document.quoted && self.reading.is_typed() && self.in_subscript() {
            return Place::Number(Misplaced::SUBSCRIPT);
        }
        Place::Document { document, nested }
    }

    /// The back-quotes that are open: they do not nest.
    fn backquotes(&self) -> Option<Backquotes> {
        let (at, backslashes) = self
            .frames
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, frame)| match frame {
                Frame::Backquotes { backslashes } => Some((at, *backslashes)),
                _ => None,
            })?;
        Some(Backquotes {
            backslashes,
            quoted: self.frames[..at].contains(&Frame::Double),
            typed: self.reading.is_typed(),
        })
    }

    fn place(&self) -> Place<'static> {
        if let Some(refused) = self.refused.or(self.lost) {
            return Place::Nowhere(refused);
        }
        let below = self.frames.iter().rev().skip(1);
        let limit = |frame: &Frame| match frame {
            Frame::Ansi => Some(Place::Harmless(Misplaced {
                place: "inside `$'…'`",
                help: "close the quotes before it: `$'…'{{ x }}`",
            })),
            Frame::Parameter { .. } => Some(self.in_parameter()),
            Frame::Arithmetic { .. } | Frame::Brackets { .. } => {
                Some(Place::Number(Misplaced::ARITHMETIC))
            }
            _ => None,
        };
        let nearest = |frame: &&Frame| {
            matches!(
                frame,
                Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. }
            )
        };
        match self.top() {
            Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. } => Place::Bare,
            top @ (Frame::Double | Frame::Single) => {
                let outside = below.take_while(|frame| !nearest(frame)).find_map(limit);
                match (outside, top) {
                    (Some(place), _) => place,
                    (None, Frame::Single) => Place::Single,
                    (None, _) => Place::Double,
                }
            }
            top => limit(&top).unwrap_or(Place::Bare),
        }
    }

    fn value(&mut self, value: usize, length: usize) -> Result<(), R::Error> {
        let begins = matches!(
            self.top(),
            Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. }
        );
        if self.fresh && begins {
            self.word(None);
        }
        let before = &self.text[..self.at];
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        if self.top() == Frame::Single && backslashes % 2 == 1 && self.reading.is_typed() {
            // The quotes are ended and begun again around the value.
            self.refused = Some(Misplaced::TYPED_QUOTE);
        }
        let mut place = self.place();
        let is_bare = matches!(place, Place::Bare);
        let mut bound = None;
        match self.limit(length) {
            _ if matches!(place, Place::Nowhere(_) | Place::Number(_)) => {}
            Some(Limit::Place(limited)) => place = limited,
            Some(Limit::Bound(limited)) => bound = Some(limited),
            None => {}
        }
        let is_word = self.put_bound(value, length, place, bound)?;
        if let Some(words) = self.words() {
            words.letter(MARK);
        }
        self.refused = None;
        self.fresh &= !(is_bare && is_word);
        Ok(())
    }

    /// What the second reading of a value demands of it.
    fn limit(&self, length: usize) -> Option<Limit> {
        let begun = self.commands.last()?;
        let is_typed = self.reading.is_typed();
        if is_typed && self.in_subscript() {
            return Some(Limit::Place(Place::Number(Misplaced::SUBSCRIPT)));
        }
        let test = self.tests.last().and_then(|from| {
            let inside = self.frames.get(*from..)?;
            let is_apart = |frame: &Frame| {
                let substitution = Frame::Parentheses { substitution: true };
                *frame == substitution || matches!(frame, Frame::Backquotes { .. })
            };
            let in_parameter = |frame: &Frame| matches!(frame, Frame::Parameter { .. });
            (!inside.iter().any(is_apart)).then(|| inside.iter().any(in_parameter))
        });
        let around = Around {
            words: &begun.words,
            rest: self.text.get(self.at + length..)?,
            quote: match self.top() {
                Frame::Double => Some('"'),
                Frame::Single => Some('\''),
                _ => None,
            },
            test,
            is_typed,
            declared: &self.declared,
        };
        around.limit()
    }

    /// Whether `$name[` is open, which zsh takes for a subscript.
    fn in_subscript(&self) -> bool {
        // Nobody writes a longer one.
        const FURTHEST: usize = 1024;
        let from = self
            .text
            .ceil_char_boundary(self.at.saturating_sub(FURTHEST));
        let before = &self.text[from..self.at];
        let before = before.rsplit('\n').next().unwrap_or(before);
        before.match_indices('$').any(|(at, _)| {
            let name = before[at + 1..].trim_start_matches(['+', '^', '~', '=', '#']);
            let end = name.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            let after = match end {
                Some(0) => name
                    .strip_prefix(['@', '*', '?', '!', '$', '-'])
                    .unwrap_or(name),
                Some(end) => &name[end..],
                None => "",
            };
            after.starts_with('[') && after_brackets(after).is_none()
        })
    }

    fn put(&mut self, value: usize, length: usize, place: Place<'_>) -> Result<bool, R::Error> {
        self.put_bound(value, length, place, None)
    }

    fn put_bound(
        &mut self,
        value: usize,
        length: usize,
        place: Place<'_>,
        bound: Option<Bound>,
    ) -> Result<bool, R::Error> {
        let standing = Standing {
            value,
            place,
            next: self.text[self.at + length..].chars().next(),
            backquotes: self.backquotes(),
            bound,
        };
        self.at += length;
        self.reading.value(&standing)
    }

    fn in_parameter(&self) -> Place<'static> {
        let misplaced = Misplaced {
            place: "inside `${…}`",
            help: "put it in a variable before",
        };
        if let Some(computed) = self.computed_in_parameter() {
            return Place::Number(computed);
        }
        match self.after_operator() {
            true => Place::Harmless(misplaced),
            false => Place::Nowhere(misplaced),
        }
    }

    /// Why `${…}` computes what comes next.
    fn computed_in_parameter(&self) -> Option<Misplaced> {
        let from = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Parameter { from, .. } => Some(*from),
            _ => None,
        })?;
        let written = self.text[from..self.at].trim_start_matches(['#', '!', '^', '=', '~', '+']);
        let written = match written.starts_with('(') {
            true => written.split_once(')').map_or("", |(_, after)| after),
            false => written,
        };
        let is_of_name =
            |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '@' | '*');
        let mut rest = written.trim_start_matches(is_of_name);
        if rest.starts_with('[') {
            let Some(after) = after_brackets(rest) else {
                return Some(Misplaced::SUBSCRIPT);
            };
            rest = after;
        }
        let offset = rest.strip_prefix(':')?;
        (!offset.starts_with(['-', '=', '+', '?', '#', '|', '*', '^'])).then_some(Misplaced::OFFSET)
    }

    /// In `${…}` a value may only be the word after an operator, never a name.
    fn after_operator(&self) -> bool {
        let innermost = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Parameter { from, .. } => Some(*from),
            _ => None,
        });
        innermost.is_none_or(|from| {
            let written = self.text[from..self.at].trim_start_matches(['#', '!']);
            written.contains(['-', '=', '+', '?', '%', '/', '#'])
        })
    }
}

/// bash 3, which some systems still have, takes the `)` of such a pattern for the end of `$(…)`.
const OPEN_PATTERN: Misplaced = Misplaced {
    place: "after a pattern of `case` inside `$(…)` that has no `(` before it",
    help: "write the patterns as `(…)`",
};

fn uncertain(place: &'static str) -> Misplaced {
    let help = "put it in a variable before";
    Misplaced { place, help }
}
