//! The person before the terminal, and answers prepared in a file.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex as Plain, PoisonError, mpsc as plain};
use std::thread;

use flow_model::graph::PromptKind;
use flow_runtime::host::{Answer, Answers, Asked, Boxed, People, Question, SecretWanted};
use flow_runtime::value::Value;
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::{Mutex, mpsc};

use super::hidden;
use super::screen::Screen;
use crate::output::clean;

/// Who answers what a run asks: the file, else the person if there is one.
pub(crate) struct Person {
    prepared: Option<Answers>,
    /// Steps whose prepared answer has been given.
    given: Plain<HashSet<String>>,
    keyboard: Option<Mutex<Keyboard>>,
    screen: Arc<Screen>,
}

impl Person {
    pub(crate) fn new(prepared: Option<Answers>, interactive: bool, screen: Arc<Screen>) -> Self {
        Person {
            prepared,
            given: Plain::default(),
            keyboard: interactive.then(Mutex::default),
            screen,
        }
    }

    /// The prepared answer. One that was not valid is not given again.
    async fn prepared(&self, question: Question<'_>) -> Option<Answer> {
        let answers = self.prepared.as_ref()?;
        let given = || self.given.lock().unwrap_or_else(PoisonError::into_inner);
        // A question that is asked again has another number.
        let unnumbered = question.names.iter().nth_back(1);
        let step = unnumbered.map_or(question.step, String::as_str);
        match question.complaint {
            Some(complaint) if given().contains(step) => {
                let warning = self.screen.paint.yellow("warning");
                let complaint = clean(complaint);
                self.screen.say(&format!(
                    "{warning}: the prepared answer to `{step}` is not used: {complaint}"
                ));
                given().remove(step);
                None
            }
            Some(_) => None,
            None => match answers.ask(question).await {
                Answer::Later => None,
                answer => {
                    given().insert(step.to_owned());
                    Some(answer)
                }
            },
        }
    }

    /// Asks at the keyboard until the answer can be understood.
    async fn keyboard(&self, keyboard: &Mutex<Keyboard>, question: Question<'_>) -> Answer {
        let mut keyboard = keyboard.lock().await;
        let mut complaint = question.complaint.map(clean);
        loop {
            self.screen
                .ask(&self.question(&question, complaint.as_deref()));
            let line = keyboard.line().await;
            self.screen.answered();
            let Some(line) = line else {
                // Whoever is not there has not refused: the question stays open.
                self.screen.say("");
                return Answer::Later;
            };
            match understood(question.kind, &line) {
                Ok(answer) => return Answer::Given(answer),
                Err(reason) => complaint = Some(reason),
            }
        }
    }

    /// What the person sees.
    fn question(&self, question: &Question<'_>, complaint: Option<&str>) -> String {
        let paint = self.screen.paint;
        let mut text = String::new();
        match complaint {
            Some(complaint) => text.push_str(&format!("{}\n", paint.red(complaint))),
            None => {
                let message = shown(question.message);
                text.push_str(&format!("{} {message}\n", paint.cyan("?")));
            }
        }
        let choices: Vec<String> = match question.kind {
            Asked::Prompt(PromptKind::Choice, options) => options.iter().map(label).collect(),
            Asked::Prompt(..) | Asked::Delegate => Vec::new(),
            Asked::Judgement(choices) => {
                let texts = choices.iter();
                texts
                    .map(|(description, _)| clean(description))
                    .chain(["none of these".to_owned()])
                    .collect()
            }
        };
        if complaint.is_none() {
            for (index, choice) in choices.iter().enumerate() {
                match question.kind {
                    Asked::Prompt(_, options) if are_numbers(options) => {
                        text.push_str(&format!("  - {choice}\n"));
                    }
                    _ => text.push_str(&format!("  {}) {choice}\n", index + 1)),
                }
            }
        }
        text.push_str(match question.kind {
            Asked::Prompt(PromptKind::Confirm, _) => "[y/n] ",
            Asked::Prompt(..) | Asked::Judgement(_) | Asked::Delegate => "> ",
        });
        text
    }
}

impl People for Person {
    fn secret<'a>(&'a self, wanted: SecretWanted<'a>) -> Boxed<'a, Option<String>> {
        Box::pin(async move {
            let keyboard = self.keyboard.as_ref().filter(|_| hidden::is_possible())?;
            let mut keyboard = keyboard.lock().await;
            let question = format!(
                "{} `{}` needs the secret `{}`\n> ",
                self.screen.paint.cyan("?"),
                wanted.step,
                wanted.name
            );
            self.screen.ask(&question);
            let line = {
                let _hidden = hidden::Hidden::begin();
                keyboard.line().await
            };
            self.screen.answered();
            self.screen.say("");
            let line = line?.trim_end_matches(['\r', '\n']).to_owned();
            if line.contains(hidden::INTERRUPT) {
                // As if the terminal had sent it.
                let _ = kill_process(getpid(), Signal::INT);
                return std::future::pending().await;
            }
            (!line.is_empty()).then_some(line)
        })
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> Boxed<'a, Answer> {
        Box::pin(async move {
            if let Asked::Prompt(PromptKind::Info, _) = question.kind {
                self.screen.say(&shown(question.message));
                return Answer::Given(Value::map([("acknowledged", Value::Bool(true))]));
            }
            if let Some(answer) = self.prepared(question).await {
                return answer;
            }
            match (&self.keyboard, question.kind) {
                (Some(keyboard), Asked::Prompt(..) | Asked::Judgement(_)) => {
                    self.keyboard(keyboard, question).await
                }
                // An agent's work is not typed at a prompt.
                (_, Asked::Delegate) | (None, _) => Answer::Later,
            }
        })
    }
}

/// A message without anything that a terminal would obey, its lines kept.
pub(super) fn shown(message: &str) -> String {
    let lines: Vec<String> = message.trim_end().lines().map(clean).collect();
    lines.join("\n")
}

/// A choice as people read it.
pub(crate) fn label(value: &Value) -> String {
    match value {
        Value::Str(text) => clean(text),
        other => other.to_string(),
    }
}

/// What a line means as an answer; else what to answer.
fn understood(kind: Asked<'_>, line: &str) -> Result<Value, String> {
    let line = line.trim_end_matches(['\r', '\n']);
    match kind {
        Asked::Prompt(PromptKind::Info, _) => Ok(Value::map([("acknowledged", Value::Bool(true))])),
        Asked::Prompt(PromptKind::Text, _) => Ok(Value::map([("input", Value::text(line))])),
        Asked::Delegate => Ok(Value::text(line)),
        Asked::Prompt(PromptKind::Confirm, _) => {
            let confirmed = match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => true,
                "n" | "no" | "false" => false,
                _ => return Err("answer y or n".to_owned()),
            };
            Ok(Value::map([("confirmed", Value::Bool(confirmed))]))
        }
        Asked::Prompt(PromptKind::Choice, options) => {
            let line = line.trim();
            let by_text = options.iter().find(|option| label(option) == line);
            let by_number = || options.get(number(line).filter(|_| !are_numbers(options))?);
            match by_text.or_else(by_number) {
                Some(option) => Ok(Value::map([("selected", option.clone())])),
                None if are_numbers(options) => {
                    let labels: Vec<String> = options.iter().map(label).collect();
                    Err(format!("answer one of {}", labels.join(", ")))
                }
                None => Err(format!("answer a number from 1 to {}", options.len())),
            }
        }
        Asked::Judgement(choices) => {
            let line = line.trim();
            let by_text = choices
                .iter()
                .position(|(description, state)| state == line || description.trim() == line);
            match by_text.or_else(|| number(line)) {
                Some(index) if index < choices.len() => {
                    Ok(Value::map([("choice", Value::text(&choices[index].1))]))
                }
                Some(index) if index == choices.len() => Ok(Value::map([("choice", Value::Null)])),
                _ => Err(format!("answer a number from 1 to {}", choices.len() + 1)),
            }
        }
    }
}

/// Whether options are numbers themselves, so that one before each would only confuse.
fn are_numbers(options: &[Value]) -> bool {
    let is_number = |option: &Value| label(option).trim().parse::<f64>().is_ok();
    options.iter().any(is_number)
}

/// A number that people count from one, as an index.
fn number(text: &str) -> Option<usize> {
    text.parse::<usize>().ok()?.checked_sub(1)
}

/// Lines of standard input, read when they are wanted and not before.
#[derive(Default)]
struct Keyboard {
    reading: Option<Reading>,
}

struct Reading {
    wanted: plain::Sender<()>,
    lines: mpsc::UnboundedReceiver<Option<String>>,
    /// A line was wanted by a question that is gone.
    open: bool,
}

impl Keyboard {
    /// The next line; `None` when there are no more.
    async fn line(&mut self) -> Option<String> {
        let reading = self.reading.get_or_insert_with(|| {
            let (wanted, want) = plain::channel();
            let (read, lines) = mpsc::unbounded_channel();
            // Reading cannot be given up, so it has a thread that the process does not wait for.
            thread::spawn(move || {
                while want.recv().is_ok() {
                    let mut line = String::new();
                    let count = hidden::read_line(&mut io::stdin().lock(), &mut line);
                    let line = count.is_ok_and(|count| count > 0).then_some(line);
                    if read.send(line).is_err() {
                        break;
                    }
                }
            });
            Reading {
                wanted,
                lines,
                open: false,
            }
        });
        if !reading.open {
            reading.wanted.send(()).ok()?;
            reading.open = true;
        }
        let line = reading.lines.recv().await.flatten();
        reading.open = false;
        line
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's failure"
    )]

    use flow_model::graph::PromptKind;
    use flow_runtime::host::Asked;
    use flow_runtime::value::Value;

    use super::understood;

    #[test]
    fn a_choice_is_made_by_text_or_number() {
        let options = [Value::text("red"), Value::text("green"), Value::text("b2")];
        let kind = Asked::Prompt(PromptKind::Choice, &options);
        let chosen = |line| understood(kind, line).map(|it| it.get("selected").cloned());
        assert_eq!(chosen("red\n").unwrap(), Some(Value::text("red")));
        assert_eq!(chosen("1").unwrap(), Some(Value::text("red")));
        assert_eq!(chosen("2").unwrap(), Some(Value::text("green")));
        for wrong in ["0", "4", "blue", ""] {
            assert_eq!(chosen(wrong).unwrap_err(), "answer a number from 1 to 3");
        }
    }

    #[test]
    fn options_that_are_numbers_are_chosen_by_what_they_are() {
        let options = [Value::Int(3), Value::text("2"), Value::Int(1)];
        let kind = Asked::Prompt(PromptKind::Choice, &options);
        let chosen = |line| understood(kind, line).map(|it| it.get("selected").cloned());
        assert_eq!(chosen("3").unwrap(), Some(Value::Int(3)));
        assert_eq!(chosen("2").unwrap(), Some(Value::text("2")));
        assert_eq!(chosen("4").unwrap_err(), "answer one of 3, 2, 1");
    }

    #[test]
    fn a_judgement_may_be_that_none_holds() {
        let choices = [("it is done".to_owned(), "done".to_owned())];
        let kind = Asked::Judgement(&choices);
        let chosen = |line| understood(kind, line).map(|it| it.get("choice").cloned());
        assert_eq!(chosen("1").unwrap(), Some(Value::text("done")));
        assert_eq!(chosen("done").unwrap(), Some(Value::text("done")));
        assert_eq!(chosen("2").unwrap(), Some(Value::Null));
        assert!(chosen("3").is_err());
    }
}
