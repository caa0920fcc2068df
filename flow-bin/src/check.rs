//! `flow check`: every fault of every definition.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flow_model::Compiled;
use flow_model::diagnostic::{self, Diagnostic, Severity, Sources};
use flow_runtime::library::{Library, Place, Role};

use crate::cli::{CheckArguments, CheckFormat};
use crate::exit::{Exit, Usage, report};
use crate::files;
use crate::output::Output;
use crate::shortcut;
use crate::target;

/// Findings shown of one definition; more are counted.
const SHOWN: usize = 100;

pub(crate) fn run(arguments: &CheckArguments, output: &mut Output) -> Result<Exit> {
    let library = target::library()?;
    let mut round = Round {
        library: &library,
        strict: arguments.strict,
        reports: Vec::new(),
        failed: Vec::new(),
        names: None,
        commands: None,
        misnamed: Vec::new(),
        files: HashSet::new(),
        told: HashSet::new(),
    };
    if arguments.files.is_empty() {
        round.project(output)?;
    }
    for asked in &arguments.files {
        round.asked(asked);
    }
    match arguments.format {
        CheckFormat::Text => round.text(output)?,
        CheckFormat::Json => round.json(output)?,
        CheckFormat::Github => round.github(output)?,
    }
    output.flush()?;
    for misnamed in &round.misnamed {
        output.warning(misnamed);
    }
    let mut exit = if round.count(Severity::Error) > 0 {
        Exit::Invalid
    } else {
        Exit::Done
    };
    for error in &round.failed {
        // What was asked for and could not be had outweighs what was found.
        let failed = report(error, output);
        if exit != Exit::Usage {
            exit = failed;
        }
    }
    Ok(exit)
}

/// What was found about one definition.
struct Report {
    sources: Sources,
    findings: Vec<Diagnostic>,
}

/// Everything that is checked together.
struct Round<'l> {
    library: &'l Library,
    strict: bool,
    reports: Vec<Report>,
    failed: Vec<anyhow::Error>,
    /// What the files of the library are found by, once somebody wants to know.
    names: Option<HashMap<PathBuf, String>>,
    /// The words that are commands, once somebody wants to know.
    commands: Option<Vec<String>>,
    /// Workflows that are not found by the name they say, or that one would type.
    misnamed: Vec<String>,
    /// What has been checked, so that a file named twice is checked once.
    files: HashSet<PathBuf>,
    /// What has been told, so that a fault of a file that two import is told once.
    told: HashSet<(String, u32, u32, &'static str, String)>,
}

impl Round<'_> {
    /// The project's workflows.
    fn project(&mut self, output: &mut Output) -> Result<()> {
        let Some(project) = self.library.project() else {
            let usage = Usage::new("there is no project here: no `.flow` and no `flow.toml`");
            return Err(usage
                .help("name the files to check: `flow check FILE…`")
                .into());
        };
        let listing = self.library.list();
        for refused in &listing.refused {
            if refused.place == Place::Project {
                let path = target::shown(&refused.path);
                output.warning(&format!(
                    "{} is left out: {}",
                    path.display(),
                    refused.reason
                ));
            }
        }
        let mut entries = listing.entries;
        entries.extend(listing.shadowed);
        entries.retain(|entry| entry.place == Place::Project && entry.role() != Role::Part);
        entries.sort_by(|a, b| a.file().cmp(&b.file()));
        if entries.is_empty() {
            let looked: Vec<String> = project
                .directories()
                .iter()
                .map(|directory| format!("`{}`", target::shown(directory).display()))
                .collect();
            let usage = format!("the project has no workflows in {}", looked.join(", "));
            return Err(Usage::new(usage).into());
        }
        for entry in &entries {
            let name = &entry.name;
            let compiled = target::entry(self.library, entry);
            self.name(compiled.as_ref().ok(), name);
            self.take(compiled.map_err(anyhow::Error::from));
        }
        Ok(())
    }

    /// What one argument stands for.
    fn asked(&mut self, asked: &Path) {
        if asked == Path::new("-") {
            self.take(target::stdin(self.library));
        } else if asked.is_dir() {
            let found = files::definitions(asked, self.library);
            if found.files.is_empty() && found.failed.is_empty() {
                let usage = format!("there are no definitions in `{}`", asked.display());
                let help = "`flow check --help` says which files of a directory are checked";
                self.failed.push(Usage::new(usage).help(help).into());
            }
            self.failed
                .extend(found.failed.into_iter().map(anyhow::Error::from));
            for file in found.files {
                self.file(&target::shown(&file));
            }
        } else {
            self.file(asked);
        }
    }

    fn file(&mut self, path: &Path) {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if self.files.insert(real.clone()) {
            let compiled = target::file(self.library, path);
            if let Some(name) = self.found_by(&real) {
                self.name(compiled.as_ref().ok(), &name);
            }
            self.take(compiled);
        }
    }

    /// What a file is found by, if it is one of the library.
    fn found_by(&mut self, file: &Path) -> Option<String> {
        let library = self.library;
        let names = self.names.get_or_insert_with(|| {
            let entries = library.list().entries.into_iter();
            let files = entries.filter_map(|entry| {
                let file = fs::canonicalize(entry.file()?).ok()?;
                Some((file, entry.name))
            });
            files.collect()
        });
        names.get(file).cloned()
    }

    /// Whoever looks for a workflow by the name it says finds nothing, or another one; and by the
    /// name of a command, that command.
    fn name(&mut self, compiled: Option<&Compiled>, found_by: &str) {
        let commands = self.commands.get_or_insert_with(shortcut::commands);
        if commands.iter().any(|command| command == found_by) {
            self.misnamed.push(format!(
                "`flow {found_by}` is a command; the workflow `{found_by}` is run by `flow _{found_by}`"
            ));
        }
        let said = compiled.and_then(Compiled::draft).map(|draft| &draft.name);
        let file = compiled.and_then(|it| it.sources.all().first());
        if let (Some(said), Some(file)) = (said, file)
            && **said != *found_by
            // In a directory, a file without a name is called after itself alone.
            && found_by.rsplit(':').next() != Some(&**said)
        {
            self.misnamed.push(format!(
                "{} says `name: {said}` and is found as `{found_by}`, by its file's name",
                file.name()
            ));
        }
    }

    fn take(&mut self, compiled: Result<Compiled>) {
        let mut compiled = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                self.failed.push(error);
                return;
            }
        };
        if self.strict {
            compiled.strict();
        }
        let Compiled {
            sources,
            mut findings,
            ..
        } = compiled;
        findings.retain(|finding| {
            let source = sources.of(finding.span);
            let name = source.map_or_else(String::new, |source| source.name().to_owned());
            self.told.insert((
                name,
                finding.span.start,
                finding.span.end,
                finding.code.as_str(),
                finding.message.clone(),
            ))
        });
        self.reports.push(Report { sources, findings });
    }

    fn count(&self, severity: Severity) -> usize {
        let findings = self.reports.iter().flat_map(|report| &report.findings);
        findings.filter(|f| f.severity == severity).count()
    }

    fn text(&self, output: &mut Output) -> Result<()> {
        let style = output.paint.style();
        let mut first = true;
        for report in &self.reports {
            for finding in report.findings.iter().take(SHOWN) {
                if !first {
                    output.line("")?;
                }
                first = false;
                output.line(diagnostic::text(finding, &report.sources, style))?;
            }
            if let Some(more) = report.findings.len().checked_sub(SHOWN).filter(|n| *n > 0) {
                let name = report
                    .sources
                    .all()
                    .first()
                    .map_or("", |source| source.name());
                output.line(format_args!("\n… and {more} more in {name}"))?;
            }
        }
        output.flush()?;
        self.summary(output);
        Ok(())
    }

    fn summary(&self, output: &mut Output) {
        let files = amount(self.reports.len(), "file");
        let errors = self.count(Severity::Error);
        let warnings = self.count(Severity::Warning);
        let paint = output.aside;
        if self.reports.is_empty() {
            return;
        }
        if errors + warnings == 0 {
            output.tell(paint.green(&format!("{files} checked, no findings")));
            return;
        }
        let mut counts = Vec::new();
        if errors > 0 {
            counts.push(paint.red(&amount(errors, "error")));
        }
        if warnings > 0 {
            counts.push(paint.yellow(&amount(warnings, "warning")));
        }
        // Errors come before warnings, as the first to be mended.
        let findings = || self.reports.iter().flat_map(|report| &report.findings);
        let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
        let first = findings().find(is_error).or_else(|| findings().next());
        let code = first.map_or("CODE", |finding| finding.code.as_str());
        let hint = paint.dim(&format!(
            "(`flow explain {code}` says more about a finding)"
        ));
        if output.together {
            output.tell("");
        }
        output.tell(format_args!("{} in {files} {hint}", counts.join(", ")));
    }

    fn json(&self, output: &mut Output) -> Result<()> {
        let findings = self.reports.iter().flat_map(|report| {
            let findings = report.findings.iter();
            findings.map(|finding| (finding, &report.sources))
        });
        let mut value = diagnostic::json(findings);
        if !self.failed.is_empty() {
            value["ok"] = false.into();
        }
        output.line(format_args!("{value:#}"))?;
        Ok(())
    }

    fn github(&self, output: &mut Output) -> Result<()> {
        for report in &self.reports {
            for finding in &report.findings {
                output.line(diagnostic::github(finding, &report.sources))?;
            }
        }
        Ok(())
    }
}

fn amount(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
