//! What the documentation says is true: its definitions pass, its tables are those of the program.
//!
//! `FLOW_BLESS=1` rewrites what is generated.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's failure"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use flow_model::diagnostic::{self, Code, Diagnostic, Family, Style};
use flow_model::expression::vocabulary;
use flow_model::grammar::{self, Instead};
use flow_model::loader::{Loader, Lookup};
use flow_model::source::Source;
use flow_model::{Compiled, compile, reference, tools};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    let path = root().join("docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every page, by name.
fn pages() -> Vec<(String, String)> {
    let mut names: Vec<String> = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| (name.clone(), page(&name)))
        .collect()
}

/// Compares a page with what it should be, or makes it so.
fn expect(name: &str, wanted: &str) {
    if std::env::var_os("FLOW_BLESS").is_some() {
        fs::write(root().join("docs").join(name), wanted).unwrap();
        return;
    }
    assert!(
        fs::read_to_string(root().join("docs").join(name)).is_ok_and(|found| found == wanted),
        "docs/{name} is out of date: run `FLOW_BLESS=1 cargo test -p flow-model --test docs`"
    );
}

/// The part of a page below a heading, down to the next one of its rank or above.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let start = page.find(&format!("\n{heading}\n")).expect(heading) + heading.len() + 2;
    let rank = heading.split(' ').next().unwrap().len();
    let mut end = page.len();
    let mut at = start;
    let mut fenced = false;
    for line in page[start..].split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
        if !fenced && (1..=rank).contains(&hashes) {
            end = at;
            break;
        }
        at += line.len();
    }
    &page[start..end]
}

/// What stands in code marks in the first cells of a part's tables.
fn first_cells(part: &str) -> BTreeSet<&str> {
    part.lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.split(" | ").next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// A fenced block of a page.
struct Block {
    page: String,
    line: usize,
    info: String,
    text: String,
}

impl Block {
    /// The file that the first line says it is.
    fn file(&self) -> Option<&str> {
        self.text
            .lines()
            .next()?
            .strip_prefix("# ")
            .filter(|name| name.ends_with(".yaml"))
    }

    fn place(&self) -> String {
        format!("docs/{}:{}", self.page, self.line)
    }
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for (name, text) in pages() {
        let mut open: Option<Block> = None;
        for (index, line) in text.lines().enumerate() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(info)) => {
                    open = Some(Block {
                        page: name.clone(),
                        line: index + 2,
                        info: info.to_owned(),
                        text: String::new(),
                    });
                }
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "a block of docs/{name} is never closed");
    }
    blocks
}

/// Finds imports among the blocks that say which file they are.
struct Blocks<'b>(&'b [Block]);

impl Loader for Blocks<'_> {
    fn import(&self, _from: &str, path: &str) -> Result<Source, String> {
        let mut blocks = self.0.iter();
        let block = blocks.find(|block| block.file() == Some(path));
        let block = block.ok_or("no block is this file")?;
        Ok(Source::new(path, block.text.as_str()))
    }

    fn workflow(&self, _name: &str) -> Lookup {
        Lookup::Unknown
    }
}

fn report(compiled: &Compiled, wanted: impl Fn(&&Diagnostic) -> bool) -> String {
    compiled
        .findings
        .iter()
        .filter(wanted)
        .map(|finding| diagnostic::text(finding, &compiled.sources, Style::Plain) + "\n\n")
        .collect()
}

/// A part of a definition with the rest around it.
fn wrapped(fragment: &str) -> String {
    let key = |name: &str| fragment.lines().any(|line| line.starts_with(name));
    let indented = |by: &str| {
        let lines: Vec<String> = fragment.lines().map(|line| format!("{by}{line}")).collect();
        lines.join("\n")
    };
    if key("- {condition:") || key("- condition:") {
        let transitions = indented("      ");
        format!(
            "initial_state: a\nstates:\n  a:\n    action: {{tool: open_terminal}}\n    transitions:\n{transitions}\n"
        )
    } else if fragment.trim_start_matches("# ").starts_with("- ") || key("- ") {
        format!("steps:\n{}\n", indented("  "))
    } else {
        format!("{fragment}\nsteps:\n  - {{type: shell, command: make}}\n")
    }
}

#[test]
fn every_definition_in_the_documentation_passes_without_a_finding() {
    let blocks = blocks();
    let definitions = blocks
        .iter()
        .filter(|block| block.info == "yaml" && block.page != "diagnostics.md");
    let mut wrong = String::new();
    let mut count = 0;
    for block in definitions {
        count += 1;
        let whole = ["steps:", "states:"]
            .iter()
            .any(|key| block.text.lines().any(|line| line.starts_with(key)));
        if !whole {
            wrong += &format!("{}: fence it as `yaml fragment`\n", block.place());
            continue;
        }
        let name = block.file().unwrap_or("example.yaml");
        let compiled = compile(Source::new(name, block.text.as_str()), &Blocks(&blocks));
        let found = report(&compiled, |_| true);
        if !found.is_empty() {
            wrong += &format!("{}\n{found}", block.place());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 20, "{count} definitions");
}

#[test]
fn every_fragment_in_the_documentation_has_the_right_form() {
    let blocks = blocks();
    let mut wrong = String::new();
    for block in blocks.iter().filter(|block| block.info == "yaml fragment") {
        let compiled = compile(
            Source::new("fragment.yaml", wrapped(&block.text)),
            &Blocks(&blocks),
        );
        // Names that the rest of the definition would declare are unknown here.
        let found = report(&compiled, |finding| {
            matches!(finding.code.family(), Family::Form | Family::Expression)
                || finding.code == Code::Deprecated
        });
        if !found.is_empty() {
            wrong += &format!("{}\n{found}", block.place());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_block_says_what_it_is() {
    let known = [
        "yaml",
        "yaml fragment",
        "yaml elsewhere",
        "json",
        "rust",
        "rust,ignore",
        "rust,no_run",
        "sh",
        "text",
        "toml",
    ];
    for block in blocks() {
        assert!(
            known.contains(&block.info.as_str()),
            "{}: `{}`",
            block.place(),
            block.info
        );
    }
}

#[test]
fn the_key_tables_are_those_of_the_grammar() {
    let begin = "<!-- keys:begin -->";
    let end = "<!-- keys:end -->";
    let page = page("language.md");
    let wanted = reference::replace_between(&page, begin, end, &reference::keys());
    expect(
        "language.md",
        &wanted.expect("both markers are in docs/language.md"),
    );
}

#[test]
fn the_diagnostics_page_is_the_table_of_rules() {
    let head = "# Diagnostics\n\n\
        Every finding of the checker has a code. The code is stable: it is never given to another \
        rule.\n`flow explain F020` prints the section of one code.\n\n\
        Most rules are errors: a definition that breaks one is not run. A lint is a warning. \
        `strict: true`\nin the definition, or `flow check --strict`, makes every lint an error. \
        [The language](language.md) says\nwhat a definition means.\n";
    expect(
        "diagnostics.md",
        &format!("{head}\n{}", reference::diagnostics()),
    );
}

#[test]
fn the_finding_that_the_reference_shows_is_a_real_one() {
    let source = "state:\n  commits: []\nsteps:\n  - type: shell\n    command: echo {{ state.comits | length }}\n";
    let compiled = compile(Source::new("notes.yaml", source), &Blocks(&[]));
    let [finding] = compiled.findings.as_slice() else {
        panic!("{}", report(&compiled, |_| true));
    };
    let text = diagnostic::text(finding, &compiled.sources, Style::Plain);
    assert!(page("language.md").contains(text.trim_end()), "{text}");
}

#[test]
fn every_filter_test_and_function_is_in_the_reference() {
    let page = page("language.md");
    for (heading, names) in [
        ("### Filters", vocabulary::FILTERS),
        ("### Tests", vocabulary::TESTS),
        ("### Functions", vocabulary::FUNCTIONS),
    ] {
        let told = first_cells(section(&page, heading));
        let names: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(told, names, "{heading}");
    }
    let functions = section(&page, "### Functions");
    for name in vocabulary::JS_FUNCTIONS {
        assert!(functions.contains(&format!("| `{name}` ")), "{name}");
    }
}

#[test]
fn every_tool_and_every_standard_variable_is_in_the_reference() {
    let page = page("language.md");
    let told = first_cells(section(&page, "### Tools of a state"));
    let names: BTreeSet<&str> = tools::all().iter().map(|tool| tool.name).collect();
    assert_eq!(told, names);
    let told = first_cells(section(&page, "### Variables"));
    let names: BTreeSet<&str> = tools::STANDARD_VARIABLES
        .iter()
        .map(|variable| variable.name)
        .collect();
    assert_eq!(told, names);
}

#[test]
fn every_step_type_has_a_section() {
    let page = page("language.md");
    let steps = section(&page, "## Step types");
    for step in grammar::STEPS.iter().filter(|step| !step.alias) {
        let mut headings = steps.lines().filter(|line| line.starts_with("### "));
        let name = format!("`{}`", step.word);
        assert!(headings.any(|line| line.contains(&name)), "{name}");
    }
}

#[test]
fn every_older_spelling_is_in_the_reference() {
    let page = page("language.md");
    let told = section(&page, "## Older spellings");
    for step in grammar::STEPS.iter().filter(|step| step.alias) {
        assert!(
            told.contains(&format!("`type: {}`", step.word)),
            "{}",
            step.word
        );
    }
    let mut records = vec![&grammar::DOCUMENT, &grammar::STATE, &grammar::TASK];
    records.extend(grammar::STEPS.iter().map(|step| step.record));
    for key in records.into_iter().flat_map(grammar::Record::all_keys) {
        if key.instead != Instead::Canonical {
            let name = format!("`{}`", key.name);
            assert!(told.contains(&name), "{name}");
        }
    }
}

#[test]
fn the_limits_in_the_reference_are_those_of_the_language() {
    let page = page("language.md");
    let limits = section(&page, "## Limits");
    let row = |name: &str| {
        let mut lines = limits.lines();
        let line = lines.find(|line| line.starts_with(&format!("| {name} |")));
        line.unwrap_or_else(|| panic!("no row `{name}`"))
            .replace(',', "")
    };
    for (name, number) in [
        ("Steps of a definition", grammar::MAX_STEPS as u64),
        ("States of a definition", grammar::MAX_STATES as u64),
        ("Transitions of a state", grammar::MAX_TRANSITIONS as u64),
        (
            "Arguments, and return values",
            grammar::MAX_VARIABLES as u64,
        ),
        (
            "Iterations of a `while`",
            u64::from(grammar::DEFAULT_ITERATIONS),
        ),
        (
            "`limits.max_steps` with `states`",
            grammar::DEFAULT_MAX_STATES,
        ),
        (
            "`limits.max_steps` with `steps`",
            grammar::DEFAULT_MAX_STEPS,
        ),
        ("`limits.max_depth`", u64::from(grammar::MAX_CALL_DEPTH)),
        ("Tasks inside tasks", grammar::MAX_TASK_DEPTH as u64),
        (
            "`limits.max_parallel`",
            u64::from(grammar::DEFAULT_PARALLEL),
        ),
        ("`limits.max_parallel`", u64::from(grammar::MAX_PARALLEL)),
        ("`limits.max_state_bytes`", grammar::DEFAULT_STATE_BYTES),
        ("Text of a file", flow_model::source::MAX_BYTES as u64),
        (
            "Nesting of lists and maps",
            flow_model::source::MAX_DEPTH as u64,
        ),
        (
            "Keys and values of a file",
            flow_model::source::MAX_NODES as u64,
        ),
    ] {
        let row = row(name);
        let numbers: Vec<&str> = row.split(|c: char| !c.is_ascii_digit()).collect();
        assert!(
            numbers.contains(&number.to_string().as_str()),
            "{number} in {row}"
        );
    }
}

/// The anchor that a heading has where Markdown is shown.
fn anchor(heading: &str) -> String {
    let letters = heading.to_lowercase();
    let letters = letters.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    letters.collect()
}

fn anchors(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if !fenced && line.starts_with('#') {
            found.push(anchor(line.trim_start_matches('#').trim_start()));
        }
    }
    found
}

#[test]
fn every_link_leads_to_a_heading_that_exists_once() {
    for (name, text) in pages() {
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if link.contains("://") {
                continue;
            }
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let directory = root().join("docs").join(file);
            if fragment.is_empty() && directory.is_dir() {
                continue;
            }
            let target = if file.is_empty() {
                text.clone()
            } else {
                page(file)
            };
            let count = anchors(&target)
                .iter()
                .filter(|anchor| *anchor == fragment)
                .count();
            assert!(
                fragment.is_empty() || count == 1,
                "docs/{name}: `{link}` {count} times"
            );
        }
    }
}

/// The dependencies that a manifest names, of every kind and for every target.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line
            .strip_prefix('[')
            .and_then(|line| line.split(']').next())
        {
            let workspace = header.starts_with("workspace");
            inside = !workspace && header.ends_with("dependencies");
            if let Some((_, name)) = header.split_once("dependencies.").filter(|_| !workspace) {
                names.push(name.to_owned());
            }
        } else if inside && let Some((name, _)) = line.split_once('=') {
            let name = name.trim().split('.').next().unwrap();
            names.extend((!name.starts_with('#')).then(|| name.trim_matches('"').to_owned()));
        }
    }
    names
}

#[test]
fn every_direct_dependency_has_a_line() {
    let mut manifests = vec![root().join("Cargo.toml")];
    for entry in fs::read_dir(root()).unwrap() {
        manifests.push(entry.unwrap().path().join("Cargo.toml"));
    }
    manifests.retain(|manifest| manifest.is_file());
    let page = page("dependencies.md");
    let told = first_cells(&page);
    let mut count = 0;
    for manifest in manifests {
        let text = fs::read_to_string(&manifest).unwrap();
        for name in dependencies(&text) {
            let ours = root().join(&name).join("Cargo.toml").is_file() || name == "flow";
            assert!(
                ours || told.contains(name.as_str()),
                "{}: `{name}` has no line in docs/dependencies.md",
                manifest.display()
            );
            count += 1;
        }
    }
    assert!(count > 10, "{count} dependencies");
}

#[test]
fn manifests_are_read_in_every_form() {
    let manifest = "[package]\nname = \"x\"\n[workspace.dependencies]\nno = \"1\"\n[dependencies]\n# a = 1\nserde.workspace = true\nclap = { version = \"4\" }\n[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n[dev-dependencies.tempfile]\nversion = \"3\"\n[features]\ndefault = []\n";
    assert_eq!(
        dependencies(manifest),
        ["serde", "clap", "libc", "tempfile"]
    );
}
