//! The reference in the documentation, printed from the grammar and the table of rules.

use std::fmt::Write as _;

use crate::diagnostic::{Code, Severity};
use crate::grammar::{self, COMMON, DOCUMENT, Instead, Key, Pattern, Record, Type};
use crate::schema::records;

/// Every record and every step type with its keys, as Markdown.
///
/// ```
/// assert!(flow_model::reference::keys().contains("| `max_depth` | whole number, 1 to 5 |"));
/// ```
#[must_use]
pub fn keys() -> String {
    let of_states = records::reachable(&grammar::STATE);
    let (states, document): (Vec<_>, Vec<_>) = records::reachable(&DOCUMENT)
        .into_iter()
        .partition(|record| records::contains(&of_states, record));
    let mut page = Page::default();
    page.kinds();
    page.heading("Document");
    page.records(&document);
    page.heading("Steps");
    page.common();
    for record in records::of_steps() {
        page.records(&records::reachable(record));
    }
    page.heading("States");
    page.records(&states);
    page.text
}

/// Every rule of the checker, by what it is about, as Markdown.
///
/// ```
/// assert!(flow_model::reference::diagnostics().contains("### F006: a key that does not exist here"));
/// ```
#[must_use]
pub fn diagnostics() -> String {
    let mut page = Page::default();
    let mut families = Vec::new();
    for code in Code::ALL {
        if !families.contains(&code.family()) {
            families.push(code.family());
        }
    }
    for family in families {
        page.heading(family.title());
        for code in Code::ALL.iter().filter(|code| code.family() == family) {
            page.rule(*code);
        }
    }
    page.text
}

/// The document with what stands between two markers replaced; `None` when they are not both
/// there, in this order. The content stands apart from the markers by an empty line.
///
/// ```
/// let old = "# Title\n<!-- begin -->\nold\n<!-- end -->\n";
/// let new = flow_model::reference::replace_between(old, "<!-- begin -->", "<!-- end -->", "new");
/// assert_eq!(new.as_deref(), Some("# Title\n<!-- begin -->\n\nnew\n\n<!-- end -->\n"));
/// ```
#[must_use]
pub fn replace_between(
    document: &str,
    begin_marker: &str,
    end_marker: &str,
    content: &str,
) -> Option<String> {
    let start = document.find(begin_marker)? + begin_marker.len();
    let end = start + document[start..].find(end_marker)?;
    let (before, after) = (&document[..start], &document[end..]);
    Some(format!("{before}\n\n{}\n\n{after}", content.trim()))
}

/// Markdown under construction.
#[derive(Default)]
struct Page {
    text: String,
    printed: Vec<&'static Record>,
}

impl Page {
    fn paragraph(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.paragraph(&format!("## {title}"));
    }

    /// What names look like, said once for all tables.
    fn kinds(&mut self) {
        self.paragraph(&format!("## {KINDS}"));
        self.paragraph("Each has at most 64 characters.");
        let mut table = "| kind | looks like |\n|---|---|\n".to_owned();
        for (pattern, noun, _) in NOUNS {
            let _ = writeln!(table, "| {noun} | {} |", pattern.words());
        }
        self.paragraph(&table);
    }

    /// Records that are not on the page yet.
    fn records(&mut self, records: &[&'static Record]) {
        for record in records {
            if !records::contains(&self.printed, record) {
                self.printed.push(record);
                self.record(record);
            }
        }
    }

    fn record(&mut self, record: &'static Record) {
        self.paragraph(&format!("### {}", title(record)));
        self.paragraph(record.doc);
        let is_step = records::words(record).next().is_some();
        let own = |key: &&Key| !(is_step && is_common(key));
        let keys: Vec<&'static Key> = record.all_keys().filter(own).collect();
        if is_step {
            self.paragraph(&step_note(record, keys.is_empty() && record.rest.is_none()));
        }
        self.table(&keys);
        if let Some(rest) = record.rest {
            self.paragraph(&format!("Every other key takes {}.", takes(rest)));
        }
        if record.at_least == 1 {
            self.paragraph("At least one key is given.");
        }
        if !record.one_of.is_empty() {
            let choice = code_list(record.one_of.iter().copied(), "and");
            self.paragraph(&format!("Exactly one of {choice} is given."));
        }
        self.forms(&keys);
    }

    /// The keys of every step, and the records they lead to.
    fn common(&mut self) {
        self.paragraph(&format!("### {EVERY_STEP}"));
        let keys: Vec<&'static Key> = COMMON.iter().collect();
        self.table(&keys);
        self.forms(&keys);
        self.records(&records::below(COMMON));
    }

    /// Canonical keys, a row each, with their other spellings.
    fn table(&mut self, keys: &[&'static Key]) {
        let canonical = |key: &&&Key| key.instead == Instead::Canonical;
        if !keys.iter().any(|key| canonical(&key)) {
            return;
        }
        let mut table =
            "| key | takes | default | meaning | also accepted |\n|---|---|---|---|---|\n"
                .to_owned();
        for key in keys.iter().filter(canonical) {
            let others = keys
                .iter()
                .filter(|other| other.instead == Instead::Name(key.name))
                .map(|other| format!("`{}`", other.name));
            let cells = [
                format!("`{}`", key.name),
                takes_key(key),
                if key.required {
                    "required"
                } else {
                    key.default
                }
                .to_owned(),
                key.doc.to_owned(),
                others.collect::<Vec<_>>().join(", "),
            ];
            for cell in cells {
                let _ = match cell.as_str() {
                    "" => write!(table, "| "),
                    text => write!(table, "| {} ", text.replace('|', "\\|")),
                };
            }
            table.push_str("|\n");
        }
        self.paragraph(&table);
    }

    fn forms(&mut self, keys: &[&'static Key]) {
        let lines: Vec<String> = keys.iter().filter_map(|key| form(key)).collect();
        if !lines.is_empty() {
            self.paragraph(&lines.join("\n"));
        }
    }

    fn rule(&mut self, code: Code) {
        self.paragraph(&format!("### {code}: {}", code.title()));
        if code.severity() == Severity::Warning {
            self.paragraph("*A lint: a warning, and an error under `strict: true`.*");
        }
        let lines: Vec<&str> = code.explanation().lines().map(str::trim).collect();
        self.paragraph(&lines.join("\n"));
        for (word, example) in [
            ("Wrong", code.bad_example()),
            ("Right", code.good_example()),
        ] {
            if !example.is_empty() {
                self.paragraph(&format!("{word}:\n\n```yaml\n{}\n```", example.trim_end()));
            }
        }
    }
}

const EVERY_STEP: &str = "Keys of every step";
const KINDS: &str = "Kinds of names";

/// What tables call the kinds of names: one, and several.
const NOUNS: &[(Pattern, &str, &str)] = &[
    (Pattern::Name, "name", "names"),
    (Pattern::Workflow, "workflow name", "workflow names"),
    (Pattern::Environment, "variable name", "variable names"),
    (Pattern::Agent, "agent", "agents"),
    (Pattern::AgentKey, "agent name", "agent names"),
    (Pattern::Version, "version", "versions"),
];

fn noun(pattern: Pattern) -> Option<(String, String)> {
    let link = |word: &str| format!("[{word}](#{})", anchor(KINDS));
    NOUNS
        .iter()
        .find(|(known, ..)| *known == pattern)
        .map(|(_, one, several)| (link(one), link(several)))
}

fn is_common(key: &Key) -> bool {
    COMMON
        .iter()
        .any(|common| common.name == key.name && common.doc == key.doc)
}

fn title(record: &'static Record) -> String {
    let canonical = records::words(record).filter(|step| !step.alias);
    let mut words: Vec<&str> = canonical.map(|step| step.word).collect();
    if words.is_empty() {
        words = records::words(record).map(|step| step.word).collect();
    }
    if words.is_empty() {
        format!("Keys of `{}`", record.name)
    } else {
        let plural = if words.len() > 1 { "s" } else { "" };
        format!("Keys of the {} step{plural}", code_list(words, "and"))
    }
}

/// The anchor that a heading has where Markdown is shown.
fn anchor(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

/// Which other words open the record, and which keys it has besides.
fn step_note(record: &'static Record, bare: bool) -> String {
    let canonical = records::words(record).any(|step| !step.alias);
    let others = records::words(record).filter(|step| step.alias && canonical);
    let others = code_list(others.map(|step| step.word), "and");
    let mut note = String::new();
    if !others.is_empty() {
        let _ = write!(note, "Also accepted as `type`: {others}. ");
    }
    let link = format!("[keys of every step](#{})", anchor(EVERY_STEP));
    let _ = if bare {
        write!(note, "It has the {link} and no others.")
    } else {
        write!(note, "Besides the {link}:")
    };
    note
}

/// What a key that is another form is a form of.
fn form(key: &Key) -> Option<String> {
    let Instead::Form(text) = key.instead else {
        return None;
    };
    let name = match key.ty {
        Type::Record(record) => {
            let inner: Vec<&str> = record.all_keys().map(|key| key.name).collect();
            let link = anchor(&title(record));
            format!("[`{}: {{{}}}`](#{link})", key.name, inner.join(", "))
        }
        _ => format!("`{}` ({})", key.name, takes(key.ty)),
    };
    let need = if key.required { ", required," } else { "" };
    let instead = records::phrase(text);
    let line = format!("* {name}{need} is another form of {instead}. {}", key.doc);
    Some(line.trim_end().to_owned())
}

fn takes_key(key: &Key) -> String {
    if is_common(key) && key.name == "type" {
        "a step type".to_owned()
    } else {
        takes(key.ty)
    }
}

/// What a type takes, in words and with its limits.
fn takes(ty: &'static Type) -> String {
    match ty {
        Type::Text(pattern, max) => match noun(*pattern) {
            Some((one, _)) if *max == 64 => one,
            Some((one, _)) => format!("{one}, at most {} characters", grouped(*max)),
            None => format!("text, at most {} characters", grouped(*max)),
        },
        Type::Regex => "regular expression".to_owned(),
        Type::Template => "text with templates".to_owned(),
        Type::Condition => "expression, `true` or `false`".to_owned(),
        Type::Any => "any value, with templates".to_owned(),
        Type::Literal => "any value, as it is".to_owned(),
        Type::Null => "`null`".to_owned(),
        Type::Bool => "`true` or `false`".to_owned(),
        Type::True => "`true`".to_owned(),
        Type::Int(min, i64::MAX) => format!("whole number, at least {}", grouped(min)),
        Type::Int(min, max) => format!("whole number, {} to {}", grouped(min), grouped(max)),
        Type::Number(min, max) => format!("number{}", bounds(*min, *max, "")),
        Type::Millis(min, max) => format!("milliseconds{}", bounds(*min, *max, "")),
        Type::Duration(min, max) => {
            format!("`30s`, `5m` or seconds{}", bounds(*min, *max, " s"))
        }
        Type::Word(words) => code_list(words.iter().copied(), "or"),
        Type::List(Type::Step, _) => "list of steps".to_owned(),
        Type::List(of, max) => format!("list of up to {}, each: {}", grouped(*max), takes(of)),
        Type::Map(pattern, of, max) => {
            let names = noun(*pattern).map_or("entries".to_owned(), |(_, several)| several);
            format!(
                "map of up to {} {names}, each: {}",
                grouped(*max),
                takes(of)
            )
        }
        Type::Record(record) => {
            let title = title(record);
            format!("[{}](#{})", record.name, anchor(&title))
        }
        Type::Step => "a step".to_owned(),
        Type::ActionStep => {
            "a step that acts, without `id`, `when`, `on_error` and `timeout`".to_owned()
        }
        Type::Either(types) => {
            let parts: Vec<String> = types.iter().map(|ty| takes(ty)).collect();
            parts.join("; or ")
        }
    }
}

fn bounds(min: f64, max: f64, unit: &str) -> String {
    match (min.is_finite(), max.is_finite()) {
        (true, true) => format!(", {} to {}", amount(min, unit), amount(max, unit)),
        (true, false) => format!(", at least {}", amount(min, unit)),
        (false, true) => format!(", at most {}", amount(max, unit)),
        (false, false) => String::new(),
    }
}

/// A number with its unit; whole days as days.
fn amount(number: f64, unit: &str) -> String {
    const DAY: f64 = 86_400.0;
    if unit == " s" && number >= DAY && number % DAY == 0.0 {
        format!("{} d", number / DAY)
    } else {
        format!("{}{unit}", grouped(number))
    }
}

/// A number with its thousands apart: `65,536`.
fn grouped(number: impl ToString) -> String {
    let number = number.to_string();
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (number.as_str(), String::new()),
    };
    let mut result = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    result + &fraction
}

/// Words in code marks: `a`, `b` and `c`.
fn code_list<'a>(words: impl IntoIterator<Item = &'a str>, last: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_name_has_a_noun() {
        for ty in records::all()
            .into_iter()
            .flat_map(Record::all_keys)
            .map(|key| key.ty)
        {
            if let Type::Text(pattern, _) | Type::Map(pattern, ..) = ty {
                assert!(
                    *pattern == Pattern::Free || noun(*pattern).is_some(),
                    "{pattern:?}"
                );
            }
        }
    }

    #[test]
    fn every_record_has_one_section() {
        let page = keys();
        for record in records::all() {
            let heading = format!("### {}\n", title(record));
            assert_eq!(page.matches(&heading).count(), 1, "{heading}");
        }
    }

    #[test]
    fn every_link_leads_to_a_heading() {
        let page = keys();
        let anchors: Vec<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("### ").or(line.strip_prefix("## ")))
            .map(anchor)
            .collect();
        let links: Vec<&str> = page
            .split("](#")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .collect();
        assert!(links.len() > 20);
        for link in links {
            assert!(anchors.iter().any(|anchor| anchor == link), "{link}");
        }
        let mut once = anchors.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), anchors.len());
    }

    #[test]
    fn every_spelling_of_every_key_is_there() {
        let page = keys();
        for key in records::all().into_iter().flat_map(Record::all_keys) {
            let name = key.name;
            let found = [format!("`{name}`"), format!("`{name}: {{")];
            assert!(found.iter().any(|text| page.contains(text)), "{name}");
        }
        for step in grammar::STEPS {
            assert!(page.contains(&format!("`{}`", step.word)), "{}", step.word);
        }
    }

    #[test]
    fn tables_have_five_columns() {
        let page = keys();
        let tables = page.split("\n## Document").nth(1).unwrap_or_default();
        for line in tables.lines().filter(|line| line.starts_with('|')) {
            let bars = line.replace("\\|", "").matches('|').count();
            assert_eq!(bars, 6, "{line}");
        }
    }

    #[test]
    fn types_are_told_with_their_limits() {
        let page = keys();
        for row in [
            "| `description` | text, at most 500 characters | | What the workflow is for. | |",
            "| `timeout` | `30s`, `5m` or seconds, 0.1 s to 300 s | 30 s | How long the action may take. | `timeout_seconds` |",
            "| `on_timeout` | [name](#kinds-of-names) |",
            "| `steps` | list of steps | | What the workflow does, top to bottom. | |",
            "* [`default_state: {raw, state}`](#keys-of-default_state) is another form of `state`.",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }

    #[test]
    fn every_rule_is_there_once_and_lints_are_marked() {
        let page = diagnostics();
        for code in Code::ALL {
            let heading = format!("### {code}: ");
            assert_eq!(page.matches(&heading).count(), 1, "{code}");
            let section = page.split(&heading).nth(1).unwrap_or_default();
            let section = section.split("\n### ").next().unwrap_or_default();
            let lint = code.severity() == Severity::Warning;
            assert_eq!(section.contains("*A lint:"), lint, "{code}");
            assert!(section.contains(code.good_example().trim_end()), "{code}");
        }
    }

    #[test]
    fn replacing_is_done_once_and_for_all() {
        let replace = |document: &str| replace_between(document, "<b>", "<e>", "new\n");
        let once = replace("x <e> <b>old<e> y").expect("both markers are there");
        assert_eq!(once, "x <e> <b>\n\nnew\n\n<e> y");
        assert_eq!(replace(&once).as_deref(), Some(once.as_str()));
        assert_eq!(replace("<e> and <b>"), None);
        assert_eq!(replace("neither"), None);
    }
}
