//! What a host knows of secrets: values in memory, and where others come from.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Boxed;
use super::called::Pending;
use super::local::{Error, Host, Report};
use super::sessions::is_terminal;
use super::traces::Traces;
use crate::expression;
use crate::input::{InputFault, given_secret, read_reference};
use crate::journal::RunId;
use crate::run::{
    Action, Deed, Effect, Ending, Event, Failure, FailureKind, Finish, Happening, Run, Start,
};
use crate::secret::{self, Piece, Place, Reference, Scrubber};
use crate::terminal::Terminals;
use crate::value::Value;

/// A secret that a step needs and that is not known here.
#[derive(Clone, Copy, Debug)]
pub struct SecretWanted<'a> {
    /// The run whose input it is.
    pub run: RunId,
    /// The input.
    pub input: &'a str,
    /// The step that needs it.
    pub step: &'a str,
}

/// The values that are known in this process.
#[derive(Default)]
pub(super) struct Vault {
    known: Mutex<Known>,
    /// One question at a time: two steps may need the same secret.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    values: HashMap<(String, String), Held>,
    scrubber: Arc<Scrubber>,
    /// Those that terminals have been told: a session outlives the run that has typed them.
    typed: Vec<(String, String, String)>,
    /// Secrets that a run waits for.
    missing: HashMap<RunId, BTreeSet<String>>,
}

struct Held {
    value: Value,
    /// Nobody but this process knows it.
    by_hand: bool,
}

/// An action with its secrets, or why it cannot be done.
pub(super) enum Prepared {
    Ready(Box<Action>),
    Missing,
    Failed(Failure),
}

impl Vault {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is scrubbed from what concerns a run.
    pub(super) fn scrubber(&self, run: &str) -> Arc<Scrubber> {
        let all = Arc::clone(&self.known().scrubber);
        if all.is_empty() {
            return all;
        }
        Arc::new(all.preferring(run))
    }

    /// Remembers a value, and scrubs it from now on.
    pub(super) fn keep(&self, run: &str, input: &str, value: &str, by_hand: bool) {
        let mut known = self.known();
        Arc::make_mut(&mut known.scrubber).add(run, input, value);
        let value = Value::text(value);
        let held = Held { value, by_hand };
        known
            .values
            .insert((run.to_owned(), input.to_owned()), held);
    }

    /// Nobody drives a run any more; when it is over it is not asked for again.
    pub(super) fn forget(&self, run: &str, is_over: bool) {
        let mut known = self.known();
        let before = known.values.len();
        known
            .values
            .retain(|(of, _), held| of != run || (held.by_hand && !is_over));
        if known.values.len() == before {
            return;
        }
        let mut left = Scrubber::default();
        for ((run, input), held) in &known.values {
            left.add(run, input, &plain(&held.value));
        }
        for (run, input, value) in &known.typed {
            left.add(run, input, value);
        }
        known.scrubber = Arc::new(left);
    }

    /// Remembers the secrets of some parameters for as long as there are terminals, which are told
    /// them: what they show is scrubbed and masked from now on, whoever asks.
    fn type_into(&self, terminals: &Terminals, parameters: &Value) {
        let places = std::cell::RefCell::new(Vec::new());
        secret::each_text(parameters, &|text| {
            let found = secret::pieces(text).filter_map(|piece| match piece {
                Piece::Secret(place) => Some((place.run.to_owned(), place.input.to_owned())),
                Piece::Text(_) | Piece::Broken => None,
            });
            places.borrow_mut().extend(found);
            None
        });
        for (run, input) in places.into_inner() {
            let Some(value) = self.get(&run, &input) else {
                continue;
            };
            let value = plain(&value);
            terminals.conceal(&run, &input, &value);
            let mut known = self.known();
            let typed = (run, input, value);
            if !known.typed.contains(&typed) {
                known.typed.push(typed);
            }
        }
    }

    fn get(&self, run: &str, input: &str) -> Option<Value> {
        let key = (run.to_owned(), input.to_owned());
        self.known().values.get(&key).map(|held| held.value.clone())
    }

    pub(super) fn missing(&self, run: RunId) -> Vec<String> {
        let known = self.known();
        let missing = known.missing.get(&run);
        missing.map_or_else(Vec::new, |names| names.iter().cloned().collect())
    }

    /// The placeholder of a value that is known already.
    pub(super) fn placeholder(&self, text: &str) -> Option<String> {
        self.known().scrubber.text(text)
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        other => other.to_string(),
    }
}

impl Host {
    /// Learns what can be learned of a run's secrets, so that they are scrubbed before they are
    /// used.
    pub(super) fn learn(&self, start: &Start) {
        for (input, reference) in &start.secrets {
            if self.inner.vault.get(&start.run, input).is_none()
                && let Ok(Some(value)) = read_reference(reference)
            {
                self.inner.vault.keep(&start.run, input, &value, false);
            }
        }
    }

    /// The value of a secret; `None` when nobody here knows it.
    async fn secret(&self, place: Place<'_>, step: &str) -> Result<Option<Value>, Failure> {
        let vault = &self.inner.vault;
        if let Some(value) = vault.get(place.run, place.input) {
            return Ok(Some(value));
        }
        let changed = || {
            let message = format!(
                "an expression has changed the secret `{}`, which can only be passed on as it is",
                place.input
            );
            Failure::new(FailureKind::Expression, message)
        };
        let run: RunId = place.run.parse().map_err(|_| changed())?;
        let start = self.start_of(run).map_err(|_| changed())?;
        let Some(reference) = start.secrets.get(place.input) else {
            return Err(changed());
        };
        let _one = vault.asking.lock().await;
        if let Some(value) = vault.get(place.run, place.input) {
            return Ok(Some(value));
        }
        let read = match reference {
            Reference::Default => self.default_of(run, place.input),
            Reference::Environment(_) | Reference::File(_) | Reference::Hand => {
                read_reference(reference).ok().flatten()
            }
        };
        // Wherever it came from, it may be given by its variable now.
        let read = read.or_else(|| std::env::var(secret::variable(place.input)).ok());
        let value = match read {
            Some(value) => Some(value),
            None => {
                let wanted = SecretWanted {
                    run,
                    input: place.input,
                    step,
                };
                self.inner.options.people.secret(wanted).await
            }
        };
        let value = value.filter(|value| value.len() >= secret::SHORTEST);
        if let Some(value) = &value {
            vault.keep(place.run, place.input, value, *reference == Reference::Hand);
        }
        Ok(value.map(Value::text))
    }

    pub(super) fn start_of(&self, run: RunId) -> Result<Start, Error> {
        let first = self.journal().events(run, 1..=1, 1)?;
        let event = first.first().map(|event| &event.body[..]);
        let event: Event = serde_json::from_slice(event.unwrap_or_default())
            .map_err(|error| Error::Unreadable(error.to_string()))?;
        match event.what {
            Happening::Started(start) => Ok(start),
            _ => Err(Error::Unreadable("it does not begin".to_owned())),
        }
    }

    /// Takes the values of secrets that a run, or one that it has called, waits for: what was given
    /// by hand is known to the process it was given to, and to no other.
    ///
    /// # Errors
    ///
    /// [`Error::Inputs`] with every one that is no secret of those runs or cannot be one, and then
    /// none is taken; those of the journal.
    pub fn give_secrets(&self, run: RunId, given: &Value) -> Result<(), Error> {
        let Value::Map(given) = given else {
            return Ok(());
        };
        let starts = self.starts_around(run)?;
        let mut faults = Vec::new();
        let mut found: Vec<(&str, &str, String)> = Vec::new();
        for (input, value) in &given.0 {
            let mut of = starts
                .iter()
                .filter(|start| start.secrets.contains_key(&**input))
                .peekable();
            let read = match of.peek() {
                Some(_) => given_secret(value),
                None => {
                    Err("is no secret input of the run: others stay as they were given".to_owned())
                }
            };
            match read {
                Ok((value, _)) => found.extend(of.map(|it| (&*it.run, &**input, value.clone()))),
                Err(reason) => faults.push(InputFault {
                    input: input.to_string(),
                    reason,
                }),
            }
        }
        if !faults.is_empty() {
            return Err(Error::Inputs(faults));
        }
        for (run, input, value) in found {
            self.inner.vault.keep(run, input, &value, true);
        }
        Ok(())
    }

    /// How the runs began whose secrets a run may wait for: its own, those that called it, and those
    /// that it has called and that are not over.
    fn starts_around(&self, run: RunId) -> Result<Vec<Start>, Error> {
        let mut starts = vec![self.start_of(run)?];
        let mut above = self.journal().run(run)?.parent;
        while let Some(caller) = above {
            starts.push(self.start_of(caller)?);
            above = self.journal().run(caller)?.parent;
        }
        let mut below = vec![run];
        while let Some(caller) = below.pop() {
            for called in self.called(caller)? {
                if !called.status.is_final() {
                    starts.push(self.start_of(called.id)?);
                    below.push(called.id);
                }
            }
        }
        Ok(starts)
    }

    /// The secrets that an action is done with and that nobody here knows.
    pub(super) fn lacking(&self, what: &Deed) -> BTreeSet<String> {
        let mut lacking = BTreeSet::new();
        let mut look = |text: &str| {
            for piece in secret::pieces(text) {
                if let Piece::Secret(place) = piece
                    && self.inner.vault.get(place.run, place.input).is_none()
                {
                    lacking.insert(place.input.to_owned());
                }
            }
        };
        match what {
            Deed::Shell {
                env,
                working_directory,
                ..
            } => {
                let texts = env.iter().map(|(_, value)| value).chain(working_directory);
                texts.for_each(|text| look(text));
            }
            Deed::Tool { parameters, .. } => {
                let look = std::cell::RefCell::new(look);
                secret::each_text(parameters, &|text| {
                    (look.borrow_mut())(text);
                    None
                });
            }
            Deed::Prompt { .. }
            | Deed::Delegate { .. }
            | Deed::DelegateItem { .. }
            | Deed::Judge { .. }
            | Deed::Call { .. }
            | Deed::Environment { .. } => {}
        }
        lacking
    }

    fn default_of(&self, run: RunId, input: &str) -> Option<String> {
        let definition = self.journal().run(run).ok()?.definition;
        let program = self.program(definition).ok()?;
        let mut fields = program.graph().inputs.as_deref()?.iter();
        let field = fields.find(|field| field.name == input)?;
        field
            .default
            .as_ref()
            .map(|value| plain(&Value::from(value)))
    }

    /// An action as it is done: with values where only the host sees them, and with masks where
    /// others do.
    pub(super) async fn prepared(&self, run: RunId, action: &Action) -> Prepared {
        let mut ready = action.clone();
        let revealed = match &mut ready.what {
            Deed::Shell {
                env,
                working_directory,
                ..
            } => {
                let values = env.iter_mut().map(|(_, value)| value);
                self.reveal_all(values.chain(working_directory), &action.node)
                    .await
            }
            Deed::Tool {
                tool, parameters, ..
            } => {
                let given = parameters.clone();
                let revealed = self.reveal_value(parameters, &action.node).await;
                let terminals = self.inner.options.terminals.as_ref();
                if let Some(terminals) = terminals.filter(|_| is_terminal(tool)) {
                    self.inner.vault.type_into(terminals, &given);
                }
                revealed
            }
            // A run that is called has the placeholders.
            Deed::Call { .. } | Deed::Environment { .. } => Ok(None),
            Deed::Prompt { .. }
            | Deed::Delegate { .. }
            | Deed::DelegateItem { .. }
            | Deed::Judge { .. } => {
                ready = masked_action(&ready);
                Ok(None)
            }
        };
        let mut known = self.inner.vault.known();
        match revealed {
            Ok(None) => {
                known.missing.remove(&run);
                Prepared::Ready(Box::new(ready))
            }
            Ok(Some(input)) => {
                known.missing.entry(run).or_default().insert(input);
                Prepared::Missing
            }
            Err(failure) => Prepared::Failed(failure),
        }
    }

    /// Puts values into texts; gives the secret that nobody knows.
    async fn reveal_all<'t>(
        &self,
        texts: impl Iterator<Item = &'t mut String>,
        step: &str,
    ) -> Result<Option<String>, Failure> {
        for text in texts {
            if !secret::concerns(text) {
                continue;
            }
            match self.reveal(text, step).await? {
                Ok(revealed) => *text = revealed,
                Err(missing) => return Ok(Some(missing)),
            }
        }
        Ok(None)
    }

    /// A text with its secrets, or the secret that nobody knows.
    async fn reveal(&self, text: &str, step: &str) -> Result<Result<String, String>, Failure> {
        let mut revealed = String::new();
        for piece in secret::pieces(text) {
            match piece {
                Piece::Text(text) => revealed.push_str(text),
                Piece::Broken => {
                    return Err(Failure::new(
                        FailureKind::Expression,
                        "an expression has changed a secret, which can only be passed on as it is",
                    ));
                }
                Piece::Secret(place) => match self.secret(place, step).await? {
                    None => return Ok(Err(place.input.to_owned())),
                    Some(value) if place.quoted => {
                        revealed.push_str(&expression::quoted(&plain(&value)));
                    }
                    Some(value) => revealed.push_str(&plain(&value)),
                },
            }
        }
        Ok(Ok(revealed))
    }

    fn reveal_value<'v>(
        &'v self,
        value: &'v mut Value,
        step: &'v str,
    ) -> Boxed<'v, Result<Option<String>, Failure>> {
        Box::pin(async move {
            match value {
                Value::Str(text) if secret::concerns(text) => {
                    match self.reveal(text, step).await? {
                        Ok(revealed) => *value = Value::text(revealed),
                        Err(missing) => return Ok(Some(missing)),
                    }
                }
                Value::List(list) => {
                    for item in &mut Arc::make_mut(list).0 {
                        if let Some(missing) = self.reveal_value(item, step).await? {
                            return Ok(Some(missing));
                        }
                    }
                }
                Value::Map(map) => {
                    for item in Arc::make_mut(map).0.values_mut() {
                        if let Some(missing) = self.reveal_value(item, step).await? {
                            return Ok(Some(missing));
                        }
                    }
                }
                Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
            }
            Ok(None)
        })
    }

    /// A value with the secrets that are known, to be checked and not to be kept.
    pub(super) fn known_value(&self, value: &Value) -> Value {
        let known = |text: &str| {
            secret::concerns(text).then(|| {
                let pieces = secret::pieces(text).map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Broken => String::new(),
                    Piece::Secret(place) => match self.inner.vault.get(place.run, place.input) {
                        Some(value) => plain(&value),
                        None => place.text.to_owned(),
                    },
                });
                pieces.collect()
            })
        };
        secret::each_text(value, &known)
    }

    /// What happened, without any secret that is known here.
    pub(super) fn scrubbed(&self, run: RunId, happening: Happening) -> Happening {
        let scrubber = self.inner.vault.scrubber(&run.to_string());
        if scrubber.is_empty() {
            return happening;
        }
        each_text(happening, &|text| scrubber.text(text))
    }

    /// The same for what a tool of terminals has answered, if that is what has happened.
    pub(super) fn scrubbed_in(&self, id: RunId, run: &Run, happening: Happening) -> Happening {
        let ended = happening.ends().and_then(|ended| run.action(ended));
        let in_terminal = ended.is_some_and(|action| {
            matches!(&action.what, Deed::Tool { tool, builtin: true, .. } if is_terminal(tool))
        });
        match happening {
            Happening::Completed { action, result } if in_terminal => {
                let scrubber = self.inner.vault.scrubber(&id.to_string());
                let result = match scrubber.is_empty() {
                    true => result,
                    false => secret::each_written(&result, &|text| scrubber.text(text)),
                };
                Happening::Completed { action, result }
            }
            other => self.scrubbed(id, other),
        }
    }
}

/// What happened outside, which cannot speak of secrets.
pub(super) fn foreign(happening: Happening) -> Happening {
    each_text(happening, &|text| {
        secret::concerns(text).then(|| secret::foreign(text).into_owned())
    })
}

fn each_text(happening: Happening, with: &dyn Fn(&str) -> Option<String>) -> Happening {
    let value = |value: Value| secret::each_text(&value, with);
    let text = |text: String| with(&text).unwrap_or(text);
    match happening {
        Happening::Started(start) => Happening::Started(Start {
            inputs: value(start.inputs),
            variables: value(start.variables),
            ..start
        }),
        Happening::Completed { action, result } => Happening::Completed {
            action,
            result: value(result),
        },
        Happening::Failed {
            action,
            error,
            result,
        } => Happening::Failed {
            action,
            error: Failure {
                message: text(error.message),
                ..error
            },
            result: value(result),
        },
        Happening::TimedOut { action, result } => Happening::TimedOut {
            action,
            result: value(result),
        },
        Happening::Declined { action, reason } => Happening::Declined {
            action,
            reason: text(reason),
        },
        Happening::Updated { mut updates } => {
            for update in &mut updates {
                update.value = secret::each_text(&update.value, with);
            }
            Happening::Updated { updates }
        }
        Happening::Checkpointed { reason, step } => Happening::Checkpointed {
            step,
            reason: text(reason),
        },
        Happening::Cancelled { reason } => Happening::Cancelled {
            reason: text(reason),
        },
        Happening::GivenUp { reason } => Happening::GivenUp {
            reason: text(reason),
        },
        other @ (Happening::Woke { .. }
        | Happening::Done { .. }
        | Happening::Continued
        | Happening::Rested
        | Happening::Late { .. }
        | Happening::Taken { .. }
        | Happening::Resumed(_)) => other,
    }
}

pub(super) fn masked_failure(failure: &Failure) -> Failure {
    Failure {
        message: secret::mask(&failure.message).into_owned(),
        ..failure.clone()
    }
}

/// An action as people and programs may see it.
pub(super) fn masked_action(action: &Action) -> Action {
    let mut masked = action.clone();
    let hide = |text: &mut String| {
        if secret::concerns(text) {
            *text = secret::mask(text).into_owned();
        }
    };
    let hide_value = |value: &mut Value| *value = secret::mask_value(value);
    match &mut masked.what {
        Deed::Shell {
            command,
            env,
            working_directory,
            reason,
            ..
        } => {
            hide(command);
            env.iter_mut().for_each(|(_, value)| hide(value));
            working_directory.iter_mut().for_each(hide);
            reason.iter_mut().for_each(hide);
        }
        Deed::Tool { parameters, .. } => hide_value(parameters),
        Deed::Prompt {
            message, options, ..
        } => {
            hide(message);
            options.iter_mut().for_each(hide_value);
        }
        Deed::Delegate {
            instructions,
            complaint,
            ..
        } => {
            hide(instructions);
            complaint.iter_mut().for_each(hide);
        }
        Deed::DelegateItem { inputs, prompt, .. } => {
            hide_value(inputs);
            prompt.iter_mut().for_each(hide);
        }
        Deed::Call {
            inputs,
            variables,
            definition,
            ..
        } => {
            hide_value(inputs);
            hide_value(variables);
            definition.iter_mut().for_each(hide_value);
        }
        Deed::Judge { result, .. } => hide_value(result),
        Deed::Environment { .. } => {}
    }
    masked
}

/// An effect as whoever watches may see it.
pub(super) fn masked_effect(effect: &Effect) -> Effect {
    match effect {
        Effect::Act(action) => Effect::Act(masked_action(action)),
        Effect::Left {
            place,
            outcome: Ending::Failure(message),
            next,
        } => Effect::Left {
            place: place.clone(),
            outcome: Ending::Failure(secret::mask(message).into_owned()),
            next: next.clone(),
        },
        Effect::Finish(finish) => Effect::Finish(Finish {
            status: finish.status,
            output: secret::mask_value(&finish.output),
            error: finish.error.as_ref().map(masked_failure),
        }),
        Effect::Told { place, message } => Effect::Told {
            place: place.clone(),
            message: secret::mask(message).into_owned(),
        },
        Effect::Left { .. }
        | Effect::Entered(_)
        | Effect::Sleep { .. }
        | Effect::Stop(_)
        | Effect::Yield => effect.clone(),
    }
}

impl Report {
    /// The report as people and programs may see it.
    pub(super) fn masked(self) -> Report {
        Report {
            return_values: self.return_values.as_ref().map(secret::mask_value),
            output: secret::mask_value(&self.output),
            state: secret::mask_value(&self.state),
            computed: secret::mask_value(&self.computed),
            computed_errors: secret::mask_value(&self.computed_errors),
            variables: secret::mask_value(&self.variables),
            error: self.error.as_ref().map(masked_failure),
            pending: self
                .pending
                .into_iter()
                .map(|awaited| Pending {
                    action: masked_action(&awaited.action),
                    ..awaited
                })
                .collect(),
            ..self
        }
    }
}

impl Traces {
    /// The traces as people and programs may see them.
    pub(super) fn masked(mut self) -> Traces {
        for trace in &mut self.traces {
            for (_, value) in &mut trace.inputs {
                *value = secret::mask_value(value);
            }
            trace.output = trace.output.as_ref().map(secret::mask_value);
            trace.error = trace
                .error
                .as_deref()
                .map(|error| secret::mask(error).into_owned());
        }
        self
    }
}
