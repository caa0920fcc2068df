//! Values of a command that another program reads a second time, as code.

use std::convert::Infallible;
use std::sync::LazyLock;

use regex::Regex;

use super::misplaced::{Insert, mark, with_marks};
use crate::command::{self, Command, HereDocument, Place, Reading, Standing};

/// Which of some inserts, in the order they stand, are code to another program, and to which.
pub(super) fn second_interpreters(text: &str, inserts: &[Insert]) -> Vec<(usize, String)> {
    let marked = without_statements(&with_marks(text, inserts));
    let mut programs = Programs::default();
    match command::read(&marked, &mut programs) {
        Ok(()) => {}
        Err(never) => match never {},
    }
    let stood = programs.values.iter();
    let mut found: Vec<(usize, String)> = stood
        .filter_map(|value| Some((value.index, programs.reads_again(value)?)))
        .collect();
    found.sort();
    found
}

/// A template as if every statement of it held.
fn without_statements(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(at) = rest.find("{%") {
        kept.push_str(&rest[..at]);
        rest = rest[at..].split_once("%}").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[derive(Default)]
struct Programs {
    /// The commands by their numbers, each with its text.
    commands: Vec<(Command, String)>,
    values: Vec<Value>,
    current: usize,
    in_document: bool,
}

/// Where a value stands.
struct Value {
    index: usize,
    /// The command, and those around it, with how much of each stands before the value.
    within: Vec<(usize, usize)>,
    /// It stands in what the command reads.
    is_read: bool,
}

impl Reading for Programs {
    type Error = Infallible;

    fn marked(&self, text: &str) -> Option<(usize, usize)> {
        mark(text)
    }

    fn text(&mut self, text: &str) {
        if let (false, Some((_, written))) = (self.in_document, self.commands.get_mut(self.current))
        {
            written.push_str(text);
        }
    }

    fn command(&mut self, command: Command) {
        if command.number == self.commands.len() {
            self.commands.push((command, String::new()));
        }
        self.current = command.number;
        // The line that ends a here-document is no part of a command either.
        self.in_document = false;
    }

    fn value(&mut self, standing: &Standing<'_>) -> Result<bool, Infallible> {
        let (of, is_read) = match &standing.place {
            Place::Document { document, .. } => (document.command, true),
            _ => (self.current, false),
        };
        let mut within = Vec::new();
        let mut at = Some(of);
        while let Some((command, text)) = at.and_then(|number| self.commands.get(number)) {
            within.push((command.number, text.len()));
            at = command.inside;
        }
        self.values.push(Value {
            index: standing.value,
            within,
            is_read,
        });
        // It is a word, or a part of one.
        self.text("x");
        Ok(true)
    }

    fn document(&mut self, _: &HereDocument) {
        self.in_document = true;
    }

    fn document_ends(&mut self, _: &HereDocument, _: bool) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Programs {
    /// The program that reads a value as code: among the words before it, or from the output of
    /// the command it stands in.
    fn reads_again(&self, value: &Value) -> Option<String> {
        value.within.iter().enumerate().find_map(|(level, at)| {
            let (number, before) = *at;
            let (_, text) = self.commands.get(number)?;
            let is_read = value.is_read && level == 0;
            let own = match is_read {
                true => reads_code(&words(text)),
                false => takes_code(text.get(..before)?),
            };
            own.map(str::to_owned).or_else(|| self.piped_to(number))
        })
    }

    /// The program that reads what a command writes as code.
    fn piped_to(&self, number: usize) -> Option<String> {
        let mut number = number;
        loop {
            let mut later = self.commands.iter();
            let (next, text) = later.find(|(it, _)| it.reads == Some(number))?;
            if let Some(program) = reads_code(&words(text)) {
                return Some(program.to_owned());
            }
            number = next.number;
        }
    }
}

/// The program that takes the word after this text as code.
fn takes_code(before: &str) -> Option<&str> {
    // Nobody looks for the program of a value further away than this.
    const FURTHEST: usize = 4096;
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(FURTHEST))..];
    static PROGRAM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?x) (?-u:\b)(?:
                (?P<shell>(?:ba|z|da|k|fi)?sh|su)[\t\ ]+(?:[^\t\ ]+[\t\ ]+)*?-[a-zA-Z]*c(?-u:\b)
              | (?P<eval>eval)(?-u:\b)
              | (?P<script>python[0-9.]*|perl|ruby|node|php)[\t\ ]+(?:-[^\t\ ]+[\t\ ]+)*?-[cer](?-u:\b)
              | (?P<lines>perl|ruby)[\t\ ]+(?:-[^\t\ ]+[\t\ ]+)*?-[a-zA-Z0-9]*[eE](?-u:\b)
            )",
        )
        .ok()
    });
    let found = PROGRAM.iter().flat_map(|it| it.captures_iter(before));
    for found in found {
        let mut groups = ["shell", "eval", "script", "lines"].iter();
        let program = groups.find_map(|name| found.name(name));
        let after = found.get(0).map_or(before.len(), |it| it.end());
        // What follows the code is given to it, as whoever passes a value on should.
        let given = Line::of(&before[after..]).over;
        let is_again = |word: &&str| word.starts_with('-') && word.ends_with(['e', 'E']);
        let is_script = found.name("shell").is_none() && given.last().is_some_and(is_again);
        let is_code = found.name("eval").is_some() || given.is_empty() || is_script;
        if let (true, Some(program)) = (is_code, program) {
            return Some(program.as_str());
        }
    }
    if let Some(program) = reads_argument(before) {
        return Some(program);
    }
    // What comes after the host is code to `ssh`, and the host is not.
    let is_apart = before.ends_with([' ', '\t', '\n', '"', '\'']);
    let words = words(before);
    let at = words.iter().position(|word| program(word) == "ssh")?;
    let after = after_options(&words[at + 1..]);
    let has_host = match after {
        [] => false,
        [_] => is_apart,
        [_, ..] => true,
    };
    has_host.then_some("ssh")
}

/// Variables whose text the shell expands whenever it uses them.
const EXPANDED: &[&str] = &["PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "BASH_ENV"];

/// The command or the variable that takes the argument after this text as code.
fn reads_argument(before: &str) -> Option<&str> {
    let Line { over, begun } = Line::of(before);
    if let Some((name, _)) = begun.split_once('=') {
        let name = name.trim_end_matches('+');
        let is_set = over
            .iter()
            .all(|word| word.contains('=') || SETTING.contains(word));
        if is_set && let Some(at) = before.rfind(name).filter(|_| EXPANDED.contains(&name)) {
            return before.get(at..at + name.len());
        }
    }
    let is_before = |word: &&&str| {
        let is_setting = word.contains('=') && !word.starts_with('-');
        is_setting || WRAPPERS.contains(word) || LEADING.contains(word)
    };
    let from = over.iter().take_while(is_before).count();
    // An `env` that splits a text itself is no wrapper.
    let splits = over
        .get(from.saturating_sub(1))
        .filter(|word| **word == "env");
    let (first, after) = over[from..].split_first().unzip();
    let after = after.unwrap_or_default();
    let last = after.last().copied().unwrap_or_default();
    let is_option = |word: &&str| word.len() > 1 && word.starts_with('-');
    let only_options = || after.iter().all(is_option);
    let own = first.filter(|first| !first.starts_with("./"));
    let reads = match own.map(|first| program(first)) {
        _ if splits.is_some()
            && ["-S", "--split-string"]
                .iter()
                .any(|it| begun.starts_with(it)) =>
        {
            return splits.copied();
        }
        Some("trap") => only_options(),
        Some("alias") => true,
        Some("awk" | "gawk" | "mawk" | "nawk") => {
            let mut words = after.iter();
            let mut is_program = !begun.starts_with('-');
            while let Some(word) = words.next() {
                is_program &= match *word {
                    "-v" | "-F" => words.next().is_some(),
                    "-f" | "--file" => false,
                    word => is_option(&word),
                };
            }
            is_program
        }
        // GNU's runs what `e` stands behind.
        Some("sed" | "gsed") => {
            let given = ["-e", "-f", "--expression", "--file"];
            let script =
                last == "-e" || last == "--expression" || begun.starts_with("--expression=");
            let is_given = after
                .iter()
                .any(|it| given.contains(it) || it.starts_with("--expression="));
            script || only_options() && !is_given && !begun.starts_with('-')
        }
        Some("watch") => {
            let is_own = ["-n", "--interval", "-q", "--equexit"].contains(&last);
            !is_own && !after.iter().any(|it| ["-x", "--exec"].contains(it))
        }
        Some("parallel") => {
            let given = after
                .iter()
                .any(|it| it.starts_with(":::") || ["-q", "--quote"].contains(it));
            let is_own = |word: &&str| is_option(word) || word.parse::<u32>().is_ok();
            let is_own_word = is_option(&last) && after.iter().all(is_own);
            !(given || is_own_word)
        }
        Some("script" | "flock" | "runuser" | "sg") => {
            last == "--command"
                || (is_option(&last) && !last.starts_with("--") && last.ends_with('c'))
        }
        Some("mapfile" | "readarray") => last == "-C",
        Some("compgen" | "complete") => ["-C", "-W"].contains(&last),
        Some("bind") => last == "-x",
        Some("source" | ".") => before.trim_end().ends_with("<("),
        Some(name) if SHELLS.contains(&name) => only_options() && before.trim_end().ends_with("<("),
        _ => false,
    };
    let split = splits.filter(|_| ["-S", "--split-string"].contains(first.unwrap_or(&"")));
    match reads {
        true => first.copied(),
        false => split.copied(),
    }
}

/// Commands whose arguments set variables.
const SETTING: &[&str] = &[
    "declare", "export", "local", "readonly", "set", "typeset", "-x", "-g",
];
/// Words before a command.
const LEADING: &[&str] = &[
    "!", "{", "if", "then", "elif", "else", "while", "until", "do", "builtin",
];

/// The words of a text that ends in the middle of one.
struct Line<'t> {
    /// Those that are over, without quotes around them.
    over: Vec<&'t str>,
    /// The last one, as far as it goes.
    begun: &'t str,
}

impl<'t> Line<'t> {
    fn of(text: &'t str) -> Line<'t> {
        let bare = |word: &'t str| word.trim_matches(['"', '\'']);
        let mut over = Vec::new();
        let (mut from, mut quote) = (None, None);
        let mut letters = text.char_indices();
        while let Some((at, letter)) = letters.next() {
            match (quote, letter) {
                (None, ' ' | '\t' | '\n') => {
                    over.extend(from.take().map(|from| bare(&text[from..at])));
                    continue;
                }
                (None | Some('"'), '\\') => {
                    letters.next();
                }
                (Some(open), _) if open == letter => quote = None,
                (None, '\'' | '"') => quote = Some(letter),
                _ => {}
            }
            from.get_or_insert(at);
        }
        let begun = from.map_or("", |from| bare(&text[from..]));
        Line { over, begun }
    }
}

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "fish"];
const SCRIPTS: &[&str] = &["python", "perl", "ruby", "node", "php"];
/// Programs that run the one that is named after them.
const WRAPPERS: &[&str] = &[
    "chroot", "command", "doas", "docker", "env", "exec", "kubectl", "nice", "nohup", "nsenter",
    "podman", "sudo", "time", "timeout",
];
/// Options of `ssh` that have a word after them.
const SSH_OPTIONS: &str = "bcDEeFIiJLlmOopQRSWw";

/// The program of a command that reads code where no file is given.
fn reads_code<'w>(words: &[&'w str]) -> Option<&'w str> {
    let is_setting = |word: &&&str| word.contains('=') && !word.starts_with('-');
    let settings = words.iter().take_while(is_setting).count();
    let words = &words[settings..];
    let (first, after) = words.split_first()?;
    let name = program(first);
    if name == "ssh" {
        let (_host, command) = after_options(after).split_first()?;
        return match command {
            [] => Some(first),
            command => reads_code(command).and(Some(first)),
        };
    }
    if WRAPPERS.contains(&name) {
        let is_interpreter = |word: &&&str| SHELLS.contains(&program(word)) || is_script(word);
        let at = after.iter().position(|word| is_interpreter(&word))?;
        return reads_code(&after[at..]);
    }
    let is_option = |word: &&str| word.starts_with('-');
    let has_code = |word: &&str| {
        let letters = word.trim_start_matches('-');
        is_option(word) && !word.starts_with("--") && letters.contains(['c', 'e', 'r', 'm'])
    };
    let reads = match SHELLS.contains(&name) {
        // `-s` has words after it that are no files.
        true => after.contains(&"-s") || after.iter().all(is_option),
        false => is_script(first) && after.iter().all(is_option),
    };
    let takes_code = match SHELLS.contains(&name) {
        true => after
            .iter()
            .any(|word| is_option(word) && word.ends_with('c')),
        false => after.iter().any(has_code),
    };
    (reads && !takes_code).then_some(first)
}

fn is_script(word: &str) -> bool {
    let name = program(word).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    SCRIPTS.contains(&name)
}

/// The name of a program without its directory.
fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn after_options<'w, 's>(words: &'s [&'w str]) -> &'s [&'w str] {
    let mut rest = words;
    while let Some((first, after)) = rest.split_first()
        && let Some(letters) = first.strip_prefix('-')
    {
        let has_word = letters.len() == 1 && SSH_OPTIONS.contains(letters);
        rest = match has_word {
            true => after.get(1..).unwrap_or_default(),
            false => after,
        };
    }
    rest
}

/// The words of a command, roughly: without quotes and redirections.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut is_target = false;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(['"', '\'', '(', ')', ';', '|', '&', '`', '$']);
        let unnumbered = bare.trim_start_matches(|c: char| c.is_ascii_digit());
        let target = unnumbered.trim_start_matches(['<', '>', '&', '-']);
        let redirects = unnumbered.starts_with(['<', '>']);
        if !std::mem::replace(&mut is_target, redirects && target.is_empty())
            && !redirects
            && !bare.is_empty()
        {
            words.push(bare);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs that read values, written as `@`, as code.
    fn programs(text: &str) -> Vec<(usize, String)> {
        let inserts: Vec<Insert> = text
            .match_indices('@')
            .map(|(at, _)| Insert {
                range: at..at + 1,
                quoted: true,
            })
            .collect();
        second_interpreters(text, &inserts)
    }

    #[test]
    fn a_program_that_is_given_or_reads_a_value_as_code_is_found() {
        for (text, index, program) in [
            ("sh -c \"ls @\"", 0, "sh"),
            ("ls @; sh -c \"ls; @\"", 1, "sh"),
            ("ssh -p 22 host \"\nls\ncat @\n\"", 0, "ssh"),
            ("ssh @ ls @", 1, "ssh"),
            ("eval \"$(cat @/env)\"", 0, "eval"),
            ("cat <<EOF | ssh host bash\nls @\nEOF\n", 0, "ssh"),
            (
                "cat <<EOF | sed s/a/b/ | sudo bash -s x && ls\nls @\nEOF\n",
                0,
                "bash",
            ),
            ("ssh -i key host <<'EOF'\nls @\nEOF\n", 0, "ssh"),
            ("bash -e <<EOF\nls @\nEOF\n", 0, "bash"),
            ("python3 - <<EOF\nprint(@)\nEOF\n", 0, "python3"),
            ("echo @ | sh", 0, "sh"),
            ("(echo a; echo @) | /bin/bash", 0, "/bin/bash"),
            ("{% if a %}x; {% endif %}sh -c '@'", 0, "sh"),
            ("trap @ EXIT", 0, "trap"),
            ("if a; then trap -- \"rm -r @\" EXIT INT; fi", 0, "trap"),
            ("alias ll=\"ls @\"", 0, "alias"),
            ("alias ll @", 0, "alias"),
            ("PS4=@; set -x", 0, "PS4"),
            ("export PS1=\"@ $ \"", 0, "PS1"),
            ("a=1 PROMPT_COMMAND='echo @'", 0, "PROMPT_COMMAND"),
            ("ls @ ; BASH_ENV+=@ make", 1, "BASH_ENV"),
            ("ls | awk \"/@/ {print}\"", 0, "awk"),
            ("awk -F : -v a=@ '$1 == @' file", 1, "awk"),
            ("watch -n 2 \"ls @\"", 0, "watch"),
            ("parallel -j 4 gzip @ ::: a b", 0, "parallel"),
            ("sudo flock /tmp/l -c \"ls @\"", 0, "flock"),
            ("script -qc \"ls @\" /dev/null", 0, "script"),
            ("env -S \"ls @\"", 0, "env"),
            ("env \"-Sls @\"", 0, "env"),
            ("source <(echo @)", 0, "source"),
            (". <(echo @)", 0, "."),
            ("bash <(echo @)", 0, "bash"),
            ("mapfile -C @ -c 1 a", 0, "mapfile"),
            ("perl -pi -e \"s/a/@/\" f", 0, "perl"),
            ("perl -lne \"print if /@/\"", 0, "perl"),
            ("find . -exec sh -c \"ls @\" \\;", 0, "sh"),
            ("perl -e 1 -e @", 0, "perl"),
            ("sed -i \"s/a/@/\" f", 0, "sed"),
            ("ls | sed -n -e p -e \"/@/d\"", 0, "sed"),
            ("sed --expression=@", 0, "sed"),
        ] {
            assert_eq!(programs(text), [(index, program.to_owned())], "{text}");
        }
    }

    #[test]
    fn what_stands_beside_such_a_program_is_no_code() {
        for text in [
            "ssh host uptime | grep @",
            "ssh host uptime; ls @",
            "ssh host uptime && ls @ || sh -c ls",
            "ssh @ uptime",
            "ssh-keygen -f @",
            "scp @ host:",
            "echo @ | ssh host 'cat > f'",
            "echo @ | grep bash",
            "echo @ | bash script.sh",
            "cat <<EOF > f; bash f\n@\nEOF\nls @",
            "sh -c ls\nls @ 2>&1 | tee log",
            "x=$(ssh host uptime; echo @)",
            "sh -c 'ls \"$1\"' sh @ \"@\"",
            "python3 -c 'import sys' @",
            "trap 'rm -r \"$d\"' @; trap - @",
            "awk -v a=@ '{ print a }' @",
            "awk -F @ '{ print }'",
            "awk -f @ @",
            "sed s/a/b/ @; sed -e s/a/b/ @; sed -n -f @ @",
            "watch -n @ ls; watch -x ls @",
            "parallel -j @ gzip ::: @ @",
            "flock @ make @",
            "./script -c @; my-script -c @",
            "env x=@ make @; env -i @",
            "source @; bash @; . @ @",
            "echo PS1=@; x=PS1; PS1x=@ PS3=@",
            "unalias @; echo trap @; grep alias @",
            "git commit -m \"trap @\"",
        ] {
            assert_eq!(programs(text), [], "{text}");
        }
    }
}
