//! `flow explain`: what a rule is for, with a definition that breaks it and one that does not.

use anyhow::Result;
use flow_model::diagnostic::{self, Code, Family, Severity};
use flow_model::loader::{Loader, Lookup};
use flow_model::source::Source;
use flow_model::{Compiled, compile};

use crate::cli::ExplainArguments;
use crate::exit::{Exit, Usage};
use crate::output::{Output, Paint};

/// How many codes are offered in place of one that does not exist.
const OFFERED: usize = 3;

pub(crate) fn run(arguments: &ExplainArguments, output: &mut Output) -> Result<Exit> {
    let Some(asked) = &arguments.code else {
        output.print(all(output.paint))?;
        return Ok(Exit::Done);
    };
    let Some(code) = Code::parse(asked) else {
        return Err(unknown(asked).into());
    };
    output.print(one(code, output.paint))?;
    Ok(Exit::Done)
}

/// Every rule under the heading of its family.
fn all(paint: Paint) -> String {
    let mut text = String::new();
    let mut family: Option<Family> = None;
    for code in Code::ALL {
        if family != Some(code.family()) {
            if family.is_some() {
                text.push('\n');
            }
            family = Some(code.family());
            text.push_str(&format!("{}\n", paint.bold(code.family().title())));
        }
        let shown = coloured(*code, paint, code.as_str());
        text.push_str(&format!("  {shown}  {}\n", code.title()));
    }
    text
}

/// One rule.
fn one(code: Code, paint: Paint) -> String {
    let word = code.severity().word();
    let head = coloured(code, paint, &format!("{word}[{code}]"));
    let mut text = format!("{head}: {}\n\n", paint.bold(code.title()));
    for line in code.explanation().lines() {
        text.push_str(line.trim());
        text.push('\n');
    }
    let example = Example::of(code);
    if let Some(bad) = &example.bad {
        text.push_str(&format!("\n{}\n\n", paint.bold("For example:")));
        text.push_str(&bad.listing());
        text.push_str(&format!("\n{}\n\n", paint.bold("`flow check` says:")));
        let compiled = bad.compile();
        let findings = compiled.findings.iter();
        for finding in findings.filter(|finding| finding.code == code) {
            text.push_str(&diagnostic::text(finding, &compiled.sources, paint.style()));
            text.push('\n');
        }
    }
    if let Some(good) = &example.good {
        text.push_str(&format!("\n{}\n\n", paint.bold("Mended:")));
        text.push_str(&good.listing());
    }
    text
}

fn coloured(code: Code, paint: Paint, text: &str) -> String {
    match code.severity() {
        Severity::Error => paint.red(text),
        Severity::Warning => paint.yellow(text),
    }
}

/// That there is no such rule, with the nearest ones.
fn unknown(asked: &str) -> Usage {
    let digits = asked.trim().trim_start_matches(['F', 'f']);
    let mut codes = Code::ALL.to_vec();
    match digits.parse::<u32>() {
        Ok(number) => codes.sort_by_key(|code| self::number(*code).abs_diff(number)),
        Err(_) => {
            let word = asked.trim().to_lowercase();
            codes.retain(|code| !word.is_empty() && code.title().to_lowercase().contains(&word));
        }
    }
    codes.truncate(OFFERED);
    codes.sort_unstable();
    let usage = Usage::new(format!("there is no rule `{asked}`"));
    if codes.is_empty() {
        return usage.help("`flow explain` lists all of them");
    }
    let near: Vec<String> = codes
        .iter()
        .map(|code| format!("{code} ({})", code.title()))
        .collect();
    usage.help(format!("perhaps {}", near.join(", ")))
}

fn number(code: Code) -> u32 {
    code.as_str()[1..].parse().unwrap_or(0)
}

/// A rule broken and kept.
struct Example {
    bad: Option<Files>,
    good: Option<Files>,
}

impl Example {
    /// The examples of the rules that need more than one file, or more than plain text, stand
    /// here; all others are the table's.
    fn of(code: Code) -> Self {
        let single = |text: &'static str| (!text.is_empty()).then(|| Files::single(text));
        match code {
            Code::NotUtf8 => Example {
                bad: Some(Files::bytes(
                    b"steps:\n  - type: shell\n    command: echo caf\xe9\n",
                )),
                good: Some(Files::single(
                    "steps:\n  - type: shell\n    command: echo café\n",
                )),
            },
            Code::TooLarge => Example {
                bad: Some(Files::single(ALIASES)),
                good: None,
            },
            Code::Empty => Example {
                bad: Some(Files::single("# nothing yet\n")),
                good: Some(Files::single(
                    "steps:\n  - type: shell\n    command: make\n",
                )),
            },
            Code::BadCallInput => Example {
                bad: Some(Files::pair(MISCALLING, "deploy.yaml", CALLED)),
                good: Some(Files::pair(CALLING, "deploy.yaml", CALLED)),
            },
            Code::NoImport => Example {
                bad: Some(Files::pair(IMPORTING, "part.yaml", PARTS)),
                good: Some(Files::pair(IMPORTING, "parts.yaml", PARTS)),
            },
            Code::ImportCycle => Example {
                bad: Some(Files::pair(IMPORTING, "parts.yaml", CIRCLE)),
                good: Some(Files::pair(IMPORTING, "parts.yaml", PARTS)),
            },
            Code::ImportClash => Example {
                bad: Some(Files::pair(CLASHING, "parts.yaml", PARTS)),
                good: Some(Files::pair(IMPORTING, "parts.yaml", PARTS)),
            },
            Code::NeedsStateRequired => Example {
                bad: single("strict: true\nsteps:\n  - type: shell\n    command: make\n"),
                good: single(
                    "strict: true\nsteps:\n  - type: shell\n    needs_state: []\n    command: make\n",
                ),
            },
            _ => Example {
                bad: single(code.bad_example()),
                good: single(code.good_example()),
            },
        }
    }
}

const ALIASES: &str = "\
state:
  a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
  b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
  c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
  d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
  e: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
steps: []
";
const MISCALLING: &str = "\
steps:
  - type: call
    workflow: deploy
    inputs: {brnch: main}
";
const CALLING: &str = "\
steps:
  - type: call
    workflow: deploy
    inputs: {branch: main}
";
const CALLED: &str = "\
inputs:
  branch: {type: string, default: main}
steps:
  - type: shell
    command: make {{ inputs.branch }}
";
const IMPORTING: &str = "\
imports: [parts.yaml]
steps:
  - type: foreach
    items: [1, 2]
    task: each
";
const CLASHING: &str = "\
imports: [parts.yaml]
steps:
  - type: foreach
    items: [1, 2]
    task: each
tasks:
  each:
    steps:
      - type: shell
        command: make
";
const PARTS: &str = "\
tasks:
  each:
    steps:
      - type: shell
        command: make {{ item }}
";
const CIRCLE: &str = "\
imports: [example.yaml]
tasks:
  each:
    steps:
      - type: shell
        command: make {{ item }}
";

/// A definition, and perhaps another file beside it.
struct Files {
    definition: &'static [u8],
    beside: Option<(&'static str, &'static str)>,
}

impl Files {
    fn single(text: &'static str) -> Self {
        Files::bytes(text.as_bytes())
    }

    fn bytes(definition: &'static [u8]) -> Self {
        Files {
            definition,
            beside: None,
        }
    }

    fn pair(text: &'static str, name: &'static str, other: &'static str) -> Self {
        Files {
            definition: text.as_bytes(),
            beside: Some((name, other)),
        }
    }

    /// The texts, indented, with their names when there are two.
    fn listing(&self) -> String {
        let text = String::from_utf8_lossy(self.definition);
        let mut listing = String::new();
        if let Some((name, other)) = self.beside {
            indent(&mut listing, &format!("# {name}\n{other}\n# {NAME}\n"));
        }
        indent(&mut listing, &text);
        listing
    }

    fn compile(&self) -> Compiled {
        match Source::from_bytes(NAME, self.definition) {
            Ok(source) => compile(source, self),
            Err(refused) => Compiled::refused(refused.0, refused.1),
        }
    }
}

/// What findings call the definition.
const NAME: &str = "example.yaml";

/// Knows these files and no other, for certain.
impl Loader for Files {
    fn import(&self, _from: &str, path: &str) -> Result<Source, String> {
        if path == NAME {
            let text = String::from_utf8_lossy(self.definition);
            return Ok(Source::new(NAME, text));
        }
        match self.beside {
            Some((name, text)) if name == path => Ok(Source::new(name, text)),
            Some(_) | None => Err("there is no such file".to_owned()),
        }
    }

    fn workflow(&self, name: &str) -> Lookup {
        let beside = self.beside.map(|(file, text)| Source::new(file, text));
        match beside.filter(|source| source.stem() == name) {
            Some(source) => Lookup::Found(Box::new(source)),
            None => Lookup::NotFound(Vec::new()),
        }
    }
}

fn indent(listing: &mut String, text: &str) {
    for line in text.lines() {
        if !line.is_empty() {
            listing.push_str("    ");
            listing.push_str(line);
        }
        listing.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use flow_model::diagnostic::Family;

    use super::{Code, Example};

    #[test]
    fn every_rule_has_an_example_that_breaks_it() {
        // What only generated Rust can break is not the checker's to find.
        let checked = Code::ALL
            .iter()
            .filter(|code| code.family() != Family::Rust);
        for code in checked {
            let compiled = Example::of(*code).bad.map(|bad| bad.compile());
            let found = compiled.is_some_and(|it| it.findings.iter().any(|f| f.code == *code));
            assert!(found, "{code}");
        }
    }

    #[test]
    fn every_mended_example_has_no_findings() {
        for code in Code::ALL {
            let compiled = Example::of(*code).good.map(|good| good.compile());
            let messages: Vec<String> = compiled
                .iter()
                .flat_map(|it| &it.findings)
                .map(|finding| finding.message.clone())
                .collect();
            assert!(messages.is_empty(), "{code}: {messages:?}");
        }
    }
}
