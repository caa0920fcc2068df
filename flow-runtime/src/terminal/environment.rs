//! The environment of a shell, as the shell itself wrote it down.

use std::collections::{BTreeMap, BTreeSet};

use super::program::Shell;

/// What the variables of a shell are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Every variable that is set, by name. Lists are not among them.
    pub variables: BTreeMap<String, Variable>,
    /// The names of lists, which have no value as a whole. Those of fish have one.
    pub lists: BTreeSet<String>,
}

/// A variable of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its value, which may be empty and may have several lines.
    pub value: String,
    /// Whether programs that the shell starts get it.
    pub exported: bool,
}

impl Snapshot {
    /// The value of a variable that is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|variable| &*variable.value)
    }

    /// The value of a variable that is set and exported.
    pub fn exported(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .filter(|variable| variable.exported)
            .map(|variable| &*variable.value)
    }

    /// Reads what the shell wrote. `None` when it is not complete.
    pub(super) fn read(shell: Shell, nonce: &str, file: &str) -> Option<Snapshot> {
        let (first, rest) = file.split_once('\n')?;
        let number = first.strip_prefix("#flow ")?;
        let body = rest.strip_suffix(&format!("\n#flow {number}\n"))?;
        // A value cannot contain what it does not know.
        let middle = format!("\n#{nonce}\n");
        let mut snapshot = Snapshot::default();
        match shell {
            Shell::Bash | Shell::Zsh => snapshot.declarations(body),
            Shell::Posix => {
                let (exported, all) = body.split_once(&*middle).unwrap_or((body, ""));
                snapshot.declarations(exported);
                snapshot.assignments(all);
            }
            Shell::Fish => {
                let (exported, rest) = body.split_once(&*middle).unwrap_or((body, ""));
                let (names, shown) = rest.split_once(&*middle).unwrap_or((rest, ""));
                snapshot.shown(names, exported, shown);
            }
        }
        snapshot.variables.retain(|name, _| is_told(name));
        snapshot.lists.retain(|name| is_told(name));
        Some(snapshot)
    }

    /// `declare -x NAME="value"`, `typeset -x NAME=value`, `export NAME='value'`.
    fn declarations(&mut self, text: &str) {
        let mut words = Words::new(text);
        let mut references = References::default();
        while let Some(command) = words.line() {
            let mut exported = command.first().is_some_and(|word| word == "export");
            let (mut list, mut numbered, mut tied, mut refers) = (false, false, false, false);
            for (at, word) in command.iter().enumerate().skip(1) {
                if let Some(options) = word.strip_prefix('-') {
                    exported |= options.contains('x');
                    list |= options.contains(['a', 'A']);
                    numbered |= options.contains('a');
                    tied |= options.contains('T');
                    refers |= options.contains('n');
                } else if tied {
                    self.tied(word, &command[at + 1..], exported);
                    break;
                } else if list {
                    let (name, first) = word.split_once('=').unwrap_or((word, ""));
                    self.lists.insert(name.to_owned());
                    if numbered {
                        references.list(name, first, &command[at + 1..]);
                    }
                    break;
                } else if let Some((name, value)) = word.split_once('=') {
                    match refers {
                        true => references.refer(name, value),
                        false => self.set(name, value, exported),
                    }
                    break;
                }
            }
        }
        self.resolve(&references);
    }

    /// Gives variables that stand for others what those have.
    fn resolve(&mut self, references: &References) {
        for name in references.targets.keys() {
            let Some(target) = references.last(name).filter(|it| is_told(base(it))) else {
                continue;
            };
            if let Some(variable) = self.variables.get(target).cloned() {
                self.variables.insert(name.clone(), variable);
            } else if self.lists.contains(target) {
                self.lists.insert(name.clone());
            } else if let Some(value) = references.element(target) {
                self.set(name, value, false);
            }
        }
    }

    /// `NAME name=( value value )`, and what stands between the values unless it is a colon.
    fn tied(&mut self, name: &str, rest: &[String], exported: bool) {
        let Some(end) = rest.iter().rposition(|word| word == ")") else {
            return;
        };
        let glue = rest.get(end + 1).map_or(":", String::as_str);
        let values = rest.get(1..end).unwrap_or_default();
        self.set(name, &values.join(glue), exported);
    }

    /// `NAME='value'`
    fn assignments(&mut self, text: &str) {
        let mut words = Words::new(text);
        while let Some(line) = words.line() {
            if let Some((name, value)) = line.first().and_then(|word| word.split_once('='))
                && !self.variables.contains_key(name)
            {
                self.set(name, value, false);
            }
        }
    }

    /// Names, and among other lines their values: `$NAME[1]: |value|`. Of several scopes the innermost
    /// comes first. Of a list with very many values those in the middle are left out: it is not told.
    fn shown(&mut self, names: &str, exported: &str, shown: &str) {
        let mut lists: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut cut: BTreeSet<&str> = BTreeSet::new();
        for line in shown.lines() {
            let Some((name, rest)) = line.strip_prefix('$').and_then(|it| it.split_once('['))
            else {
                continue;
            };
            let Some((number, value)) = rest.split_once("]: |") else {
                continue;
            };
            let (Ok(number), Some(value)) = (number.parse::<usize>(), value.strip_suffix('|'))
            else {
                continue;
            };
            let list = lists.entry(name).or_default();
            if number == list.len() + 1 {
                list.push(Words::new(value).escaped());
            } else if number > list.len() {
                cut.insert(name);
            }
        }
        let exported: BTreeSet<&str> = exported.lines().collect();
        for name in names.lines().filter(|name| !cut.contains(name)) {
            let glue = if name.ends_with("PATH") { ":" } else { " " };
            let value = lists.get(name).map(|list| list.join(glue));
            self.set(name, &value.unwrap_or_default(), exported.contains(name));
        }
    }

    fn set(&mut self, name: &str, value: &str, exported: bool) {
        let variable = Variable {
            value: value.to_owned(),
            exported,
        };
        self.variables.insert(name.to_owned(), variable);
    }
}

/// Variables of bash and zsh that stand for others, and the lists whose elements they may stand for.
#[derive(Default)]
struct References {
    /// What each stands for: a name, or `list[number]`.
    targets: BTreeMap<String, String>,
    /// The elements of lists, as `[number]=value` with what stands around them.
    lists: BTreeMap<String, Vec<String>>,
}

impl References {
    fn refer(&mut self, name: &str, target: &str) {
        self.targets.insert(name.to_owned(), target.to_owned());
    }

    /// `NAME=([0]="value" [1]="value")`
    fn list(&mut self, name: &str, first: &str, rest: &[String]) {
        let words = std::iter::once(first).chain(rest.iter().map(String::as_str));
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        if let Some(first) = words.first_mut() {
            *first = first.strip_prefix('(').unwrap_or(first).to_owned();
        }
        if let Some(last) = words.last_mut() {
            *last = last.strip_suffix(')').unwrap_or(last).to_owned();
        }
        self.lists.insert(name.to_owned(), words);
    }

    /// What a name stands for in the end; nothing when that leads back to itself.
    fn last<'r>(&'r self, name: &'r str) -> Option<&'r str> {
        let next = |it: &&'r str| self.targets.get(*it).map(String::as_str);
        // One step more than there are leads in a circle.
        let steps = std::iter::successors(Some(name), next).take(self.targets.len() + 1);
        steps.last().filter(|it| !self.targets.contains_key(*it))
    }

    fn element(&self, target: &str) -> Option<&str> {
        let (list, number) = target.strip_suffix(']')?.split_once('[')?;
        let mut elements = self.lists.get(list)?.iter();
        elements.find_map(|word| {
            let (known, value) = word.strip_prefix('[')?.split_once("]=")?;
            (known == number).then_some(value)
        })
    }
}

/// The name in `list[number]`.
fn base(target: &str) -> &str {
    target.split_once('[').map_or(target, |(name, _)| name)
}

/// Whether others are told of a variable.
fn is_told(name: &str) -> bool {
    !name.starts_with("__flow_") && is_name(name)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// Words as a shell quotes them, in lines.
struct Words<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Words<'a> {
        Words {
            rest: text.chars().peekable(),
        }
    }

    /// All of it, in which nothing is quoted but by backslashes.
    fn escaped(mut self) -> String {
        let mut bytes = Vec::new();
        while let Some(next) = self.rest.next() {
            match next {
                '\\' => self.escape(&mut bytes),
                other => push(&mut bytes, other),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The words up to the next unquoted line end.
    fn line(&mut self) -> Option<Vec<String>> {
        self.rest.peek()?;
        let mut words = Vec::new();
        let mut bytes: Vec<u8> = Vec::new();
        let mut begun = false;
        loop {
            let next = self.rest.next();
            match next {
                None | Some('\n' | ' ') => {
                    if begun {
                        words.push(String::from_utf8_lossy(&bytes).into_owned());
                        bytes.clear();
                        begun = false;
                    }
                    if next != Some(' ') {
                        return Some(words);
                    }
                    continue;
                }
                Some('\'') => self.single(&mut bytes),
                Some('"') => self.double(&mut bytes),
                Some('$') if self.rest.peek() == Some(&'\'') => {
                    self.rest.next();
                    self.ansi(&mut bytes);
                }
                Some('\\') => {
                    if let Some(escaped) = self.rest.next() {
                        push(&mut bytes, escaped);
                    }
                }
                Some(other) => push(&mut bytes, other),
            }
            begun = true;
        }
    }

    fn single(&mut self, bytes: &mut Vec<u8>) {
        for next in self.rest.by_ref() {
            match next {
                '\'' => return,
                other => push(bytes, other),
            }
        }
    }

    fn double(&mut self, bytes: &mut Vec<u8>) {
        while let Some(next) = self.rest.next() {
            match next {
                '"' => return,
                '\\' => match self.rest.peek() {
                    Some('"' | '\\' | '$' | '`') => {
                        if let Some(escaped) = self.rest.next() {
                            push(bytes, escaped);
                        }
                    }
                    Some('\n') => {
                        self.rest.next();
                    }
                    _ => bytes.push(b'\\'),
                },
                other => push(bytes, other),
            }
        }
    }

    /// `$'…'`
    fn ansi(&mut self, bytes: &mut Vec<u8>) {
        while let Some(next) = self.rest.next() {
            match next {
                '\'' => return,
                '\\' => self.escape(bytes),
                other => push(bytes, other),
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, bytes: &mut Vec<u8>) {
        let Some(kind) = self.rest.next() else {
            return;
        };
        match kind {
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'e' | 'E' => bytes.push(0x1b),
            'f' => bytes.push(0x0c),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(0x0b),
            'x' | 'X' => {
                let value = self.number(16, 2, 0);
                bytes.push(value as u8);
            }
            'u' => self.character(4, bytes),
            'U' => self.character(8, bytes),
            // zsh: `\C-[` and `\M-x`.
            'C' | 'c' => {
                if self.rest.peek() == Some(&'-') {
                    self.rest.next();
                }
                if let Some(control) = self.rest.next() {
                    let byte = match control {
                        '?' => 0x7f,
                        other => other as u32 as u8 & 0x1f,
                    };
                    bytes.push(byte);
                }
            }
            'M' if self.rest.peek() == Some(&'-') => {
                self.rest.next();
                let start = bytes.len();
                match self.rest.next() {
                    Some('\\') => self.escape(bytes),
                    Some(other) => push(bytes, other),
                    None => {}
                }
                if let Some(byte) = bytes.get_mut(start) {
                    *byte |= 0x80;
                }
            }
            digit @ '0'..='7' => {
                let value = self.number(8, 2, digit as u32 - '0' as u32);
                bytes.push(value as u8);
            }
            other => push(bytes, other),
        }
    }

    fn character(&mut self, digits: usize, bytes: &mut Vec<u8>) {
        let value = self.number(16, digits, 0);
        push(
            bytes,
            char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
        );
    }

    fn number(&mut self, radix: u32, digits: usize, start: u32) -> u32 {
        let mut value = start;
        for _ in 0..digits {
            let Some(digit) = self.rest.peek().and_then(|next| next.to_digit(radix)) else {
                break;
            };
            self.rest.next();
            value = value.wrapping_mul(radix).wrapping_add(digit);
        }
        value
    }
}

fn push(bytes: &mut Vec<u8>, character: char) {
    let mut buffer = [0; 4];
    bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(shell: Shell, body: &str) -> Snapshot {
        let file = format!("#flow 3\n{body}\n#flow 3\n");
        Snapshot::read(shell, "n0", &file).expect("complete")
    }

    #[test]
    fn every_kind_of_quoting_is_read() {
        let bash = read(
            Shell::Bash,
            concat!(
                "declare -x A=\"one \\\"two\\\" \\$x \\\\ \\`y\\`\"\n",
                "declare -x B=$'a\\nb\\tc\\E\\001é'\n",
                "declare -- C=\"two\nlines\"\n",
                "declare -x EMPTY=\"\"\n",
                "declare -x UNSET\n",
                "declare -a LIST=([0]=\"x\" [1]=\"declare -x EVIL=\\\"1\\\"\")\n",
                "declare -ir UID=\"0\"",
            ),
        );
        assert_eq!(bash.get("A"), Some("one \"two\" $x \\ `y`"));
        assert_eq!(bash.get("B"), Some("a\nb\tc\x1b\x01é"));
        assert_eq!(bash.get("C"), Some("two\nlines"));
        assert_eq!(bash.exported("C"), None);
        assert_eq!(bash.exported("EMPTY"), Some(""));
        assert_eq!(bash.get("UNSET"), None);
        assert_eq!(bash.get("LIST"), None);
        assert_eq!(bash.get("EVIL"), None);
        assert_eq!(bash.get("UID"), Some("0"));

        let dash = read(
            Shell::Posix,
            "export A='it'\"'\"'s\n#flow\n'\nexport U\n#n0\nA='x'\nB='two\nlines'",
        );
        assert_eq!(dash.exported("A"), Some("it's\n#flow\n"));
        assert_eq!(dash.get("U"), None);
        assert_eq!(
            dash.variables["B"],
            Variable {
                value: "two\nlines".to_owned(),
                exported: false
            }
        );

        let fish = read(
            Shell::Fish,
            concat!(
                "A\nE\nN\n#n0\nA\nMANPATH\nE\nN\nB\nH\nLONG\n#n0\n",
                "$A: set in local scope, exported, with 1 elements\n$A[1]: |it's q|\n",
                "$A: set in global scope, exported, with 1 elements\n$A[1]: |outer|\n",
                "$A: originally inherited as |other|\n",
                "$MANPATH[1]: |/a|\n$MANPATH[2]: |/b|\n$E[1]: ||\n$N: set, with 0 elements\n",
                "$B[1]: |one\\ntwo\\x41\\\\ \"x\" 'y' $z|\n$H[1]: |a|b]: ||\n",
                "$LONG[1]: |a|\n$LONG[101]: |b|",
            ),
        );
        assert_eq!(fish.exported("A"), Some("it's q"));
        assert_eq!(fish.get("MANPATH"), Some("/a:/b"));
        assert_eq!(fish.get("H"), Some("a|b]: |"));
        assert_eq!(fish.exported("H"), None);
        assert_eq!(fish.get("B"), Some("one\ntwoA\\ \"x\" 'y' $z"));
        assert_eq!(fish.get("LONG"), None);
        assert_eq!(fish.exported("E"), Some(""));
        assert_eq!(fish.exported("N"), Some(""));

        let zsh = read(
            Shell::Zsh,
            "export A=$'\\C-[x\\M-C\\M-)\\''\nexport -T PATH path=( /a '/b c' )\ntypeset -T X x=( a b ) ,\ntypeset -a L=( 'a=b' c )\ntypeset -g B=plain\\ text\ntypeset -x C='q'",
        );
        assert_eq!(zsh.exported("A"), Some("\x1bxé'"));
        assert_eq!(zsh.get("B"), Some("plain text"));
        assert_eq!(zsh.exported("C"), Some("q"));
        assert_eq!(zsh.get("L"), None);
        assert_eq!(zsh.exported("PATH"), Some("/a:/b c"));
        assert_eq!(zsh.get("X"), Some("a,b"));
    }

    #[test]
    fn what_stands_for_another_variable_has_its_value() {
        let bash = read(
            Shell::Bash,
            concat!(
                "declare -n CHAIN=\"NEAR\"\n",
                "declare -n CIRCLE=\"CIRCLE_\"\n",
                "declare -n CIRCLE_=\"CIRCLE\"\n",
                "declare -n ELEMENT=\"LIST[1]\"\n",
                "declare -n GONE=\"ABSENT\"\n",
                "declare -n HIDDEN=\"__flow_nonce\"\n",
                "declare -n KEY=\"KEYS[k]\"\n",
                "declare -A KEYS=([k]=\"v\" )\n",
                "declare -a LIST=([0]=\"x\" [1]=\"y [2]=z)\" [3]=$'a\\nb')\n",
                "declare -n LAST=\"LIST[3]\"\n",
                "declare -nr NEAR=\"OTHER\"\n",
                "declare -n NONE=\"LIST[2]\"\n",
                "declare -x OTHER=\"val\"\n",
                "declare -n UNBOUND\n",
                "declare -n WHOLE=\"LIST\"\n",
                "declare -- __flow_nonce=\"n\"",
            ),
        );
        assert_eq!(bash.exported("NEAR"), Some("val"));
        assert_eq!(bash.exported("CHAIN"), Some("val"));
        assert_eq!(bash.get("ELEMENT"), Some("y [2]=z)"));
        assert_eq!(bash.get("LAST"), Some("a\nb"));
        for name in [
            "CIRCLE", "CIRCLE_", "GONE", "HIDDEN", "KEY", "NONE", "UNBOUND", "WHOLE",
        ] {
            assert_eq!(bash.get(name), None, "{name}");
        }
        let lists = ["KEYS", "LIST", "WHOLE"];
        assert_eq!(bash.lists, lists.map(str::to_owned).into());
    }

    #[test]
    fn a_file_that_is_being_written_is_not_believed() {
        for file in [
            "",
            "#flow 3\n",
            "#flow 3\nA='1'\n",
            "#flow 3\nA='1'\n#flow 2\n",
        ] {
            assert_eq!(Snapshot::read(Shell::Posix, "n0", file), None);
        }
    }
}
