//! Secrets of runs: where they come from, where they go, and what is seen of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Boxed;
use super::called::Pending;
use super::driver::Driver;
use super::local::{Error, Host, Report};
use super::sessions::is_terminal;
use super::traces::Traces;
use super::vault::plain;
use serde_json::Value as Json;

use crate::expression;
use crate::input::{InputFault, given_secret, read_reference};
use crate::journal::RunId;
use crate::run::{
    Action, Deed, Effect, Ending, Event, Failure, FailureKind, Finish, Happening, Run, Start,
};
use crate::secret::{self, Piece, Place, Reference, Scrubber, Secret};
use crate::value::Value;

/// A secret that a step needs and that is not known here.
#[derive(Clone, Copy, Debug)]
pub struct SecretWanted<'a> {
    /// The run whose input it is.
    pub run: RunId,
    /// The input.
    pub input: &'a str,
    /// What it is called where it is used: the input, with its run if that has nothing to do with
    /// the user otherwise.
    pub name: &'a str,
    /// The step that needs it.
    pub step: &'a str,
}

/// An action with its secrets, or why it cannot be done.
pub(super) enum Prepared {
    /// With what of it nobody else may read where it goes to a terminal.
    Ready(Box<Action>, Vec<Secret>),
    Missing,
    Failed(Failure),
}

impl Host {
    /// The run that has called a run, or its caller, and so on: they know the same secrets.
    pub(super) fn family(&self, run: RunId) -> RunId {
        let vault = &self.inner.vault;
        if let Some(family) = vault.family(run) {
            return family;
        }
        let mut family = run;
        while let Some(caller) = self.journal().run(family).ok().and_then(|it| it.parent) {
            family = caller;
        }
        vault.note_family(run, family);
        family
    }

    /// What is scrubbed from what concerns a run.
    pub(super) fn scrubber(&self, run: RunId) -> Arc<Scrubber> {
        let vault = &self.inner.vault;
        match vault.is_empty() {
            true => Arc::default(),
            false => vault.scrubber(self.family(run), &run.to_string()),
        }
    }

    /// Nobody drives a run any more. What it knows is known as long as somebody drives who called it.
    pub(super) fn forget_secrets(&self, run: RunId, is_over: bool) {
        let vault = &self.inner.vault;
        if is_over {
            vault.misses_nothing(run);
        }
        if !vault.is_unused() && self.outermost(run).ok() == Some(run) {
            vault.forget(self.family(run), is_over);
        }
    }

    /// Learns what can be learned of a run's secrets, so that they are scrubbed before they are
    /// used.
    pub(super) fn learn(&self, run: RunId, start: &Start) {
        if start.secrets.is_empty() {
            return;
        }
        let (vault, family) = (&self.inner.vault, self.family(run));
        for (input, reference) in &start.secrets {
            if vault.get(family, &start.run, input).is_none()
                && let Ok(Some(value)) = read_reference(reference)
            {
                let (run, input) = (start.run.clone(), input.clone());
                vault.keep(family, Secret { run, input, value }, false);
            }
        }
    }

    /// The same of those that have called a run.
    pub(super) fn learn_above(&self, run: RunId) -> Result<(), Error> {
        let mut above = self.journal().run(run)?.parent;
        while let Some(caller) = above {
            self.learn(caller, &self.start_of(caller)?);
            above = self.journal().run(caller)?.parent;
        }
        Ok(())
    }

    /// What a secret is called by whoever waits for it. The input of a run that belongs to another
    /// family has the run with it: the user may have one of the same name.
    fn name_for(&self, user: RunId, (owner, input): (&str, &str)) -> String {
        match owner.parse() {
            Ok(run) if self.family(run) != self.family(user) => format!("{owner}.{input}"),
            Ok(_) | Err(_) => input.to_owned(),
        }
    }

    /// The value of a secret that a run uses; `None` when nobody here knows it.
    async fn secret(
        &self,
        user: RunId,
        place: Place<'_>,
        step: &str,
    ) -> Result<Option<String>, Failure> {
        let (vault, family) = (&self.inner.vault, self.family(user));
        if let Some(value) = vault.get(family, place.run, place.input) {
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
        if let Some(value) = vault.get(family, place.run, place.input) {
            return Ok(Some(value));
        }
        let read = match reference {
            Reference::Default => self.default_of(run, place.input),
            Reference::Environment(_) | Reference::File(_) | Reference::Hand => {
                read_reference(reference).ok().flatten()
            }
        };
        // Wherever it came from, it may be given by its variable now.
        let name = self.name_for(user, (place.run, place.input));
        let read = read.or_else(|| std::env::var(secret::variable(&name)).ok());
        let value = match read {
            Some(value) => Some(value),
            None => {
                let wanted = SecretWanted {
                    run,
                    input: place.input,
                    name: &name,
                    step,
                };
                self.inner.options.people.secret(wanted).await
            }
        };
        let value = value.filter(|value| value.len() >= secret::SHORTEST);
        if let Some(value) = &value {
            let secret = Secret {
                run: place.run.to_owned(),
                input: place.input.to_owned(),
                value: value.clone(),
            };
            vault.keep(family, secret, *reference == Reference::Hand);
        }
        Ok(value)
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

    /// The inputs that a run waits for, or one that it has called.
    pub(super) fn missing_secrets(&self, run: RunId) -> Vec<String> {
        let mut missing = BTreeSet::new();
        for waiting in self.inner.vault.waiting() {
            let mut above = Some(waiting);
            while let Some(caller) = above.filter(|it| *it != run) {
                above = self.journal().run(caller).ok().and_then(|it| it.parent);
            }
            if above.is_some() {
                missing.extend(self.inner.vault.missing(waiting));
            }
        }
        missing.into_iter().collect()
    }

    /// Takes the values of secrets that a run, or one that belongs to it, waits for: what was given
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
        let family = self.family(run);
        let wanted = self.wanted_around(run)?;
        let mut faults = Vec::new();
        let mut found: Vec<Secret> = Vec::new();
        for (input, value) in &given.0 {
            let is_meant =
                |owner: &str, wanted: &str| self.name_for(run, (owner, wanted)) == **input;
            let of = wanted
                .iter()
                .filter(|(owner, wanted)| is_meant(owner, wanted));
            let mut of = of.peekable();
            let read = match of.peek() {
                Some(_) => given_secret(value),
                None => {
                    Err("is no secret input of the run: others stay as they were given".to_owned())
                }
            };
            match read {
                Ok((value, _)) => found.extend(of.map(|(run, input)| Secret {
                    run: run.clone(),
                    input: input.clone(),
                    value: value.clone(),
                })),
                Err(reason) => faults.push(InputFault {
                    input: input.to_string(),
                    reason,
                }),
            }
        }
        if !faults.is_empty() {
            return Err(Error::Inputs(faults));
        }
        for secret in found {
            self.inner.vault.keep(family, secret, true);
        }
        Ok(())
    }

    /// The secrets that a run may wait for: its own, those of the runs that belong to it, and others that
    /// one of them has read in a terminal.
    fn wanted_around(&self, run: RunId) -> Result<BTreeSet<(String, String)>, Error> {
        let mut wanted = BTreeSet::new();
        let mut runs = vec![self.family(run)];
        while let Some(run) = runs.pop() {
            let start = self.start_of(run)?;
            let secrets = start.secrets.into_keys();
            wanted.extend(secrets.map(|input| (start.run.clone(), input)));
            runs.extend(self.called(run)?.into_iter().map(|called| called.id));
            if self.journal().run(run)?.status.is_final() {
                continue;
            }
            let standing = Driver::open(self.clone(), run)?;
            for effect in standing.run.pending() {
                if let Effect::Act(action) = effect {
                    wanted.extend(self.lacked(run, &action.what));
                }
            }
        }
        Ok(wanted)
    }

    /// The secrets that an action is done with and that nobody here knows.
    pub(super) fn lacking(&self, run: RunId, what: &Deed) -> BTreeSet<String> {
        let lacking = self.lacked(run, what).into_iter();
        let name = |(owner, input): (String, String)| self.name_for(run, (&owner, &input));
        lacking.map(name).collect()
    }

    /// The same, with the runs whose inputs they are.
    fn lacked(&self, run: RunId, what: &Deed) -> BTreeSet<(String, String)> {
        let places = match what {
            Deed::Shell {
                env,
                working_directory,
                ..
            } => {
                let texts = env.iter().map(|(_, value)| value).chain(working_directory);
                texts.flat_map(|text| places(text)).collect()
            }
            Deed::Tool { parameters, .. } => places_in(parameters),
            Deed::Prompt { .. }
            | Deed::Delegate { .. }
            | Deed::DelegateItem { .. }
            | Deed::Judge { .. }
            | Deed::Call { .. }
            | Deed::Environment { .. } => BTreeSet::new(),
        };
        let (vault, family) = (&self.inner.vault, self.family(run));
        let is_lacked = |(run, input): &(String, String)| vault.get(family, run, input).is_none();
        places.into_iter().filter(is_lacked).collect()
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
        let mut told = Vec::new();
        let revealed = match &mut ready.what {
            Deed::Shell {
                env,
                working_directory,
                ..
            } => {
                let values = env.iter_mut().map(|(_, value)| value);
                self.reveal_all(run, values.chain(working_directory), &action.node)
                    .await
            }
            Deed::Tool {
                tool, parameters, ..
            } => {
                let given = parameters.clone();
                let revealed = self.reveal_value(run, parameters, &action.node).await;
                if is_terminal(tool) {
                    told = self.known_in(run, &given);
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
        match revealed {
            Ok(None) => {
                self.inner.vault.misses_nothing(run);
                Prepared::Ready(Box::new(ready), told)
            }
            Ok(Some(input)) => {
                self.inner.vault.note_missing(run, input);
                Prepared::Missing
            }
            Err(failure) => Prepared::Failed(failure),
        }
    }

    /// Puts values into texts; gives the secret that nobody knows.
    async fn reveal_all<'t>(
        &self,
        run: RunId,
        texts: impl Iterator<Item = &'t mut String>,
        step: &str,
    ) -> Result<Option<String>, Failure> {
        for text in texts {
            if !secret::concerns(text) {
                continue;
            }
            match self.reveal(run, text, step).await? {
                Ok(revealed) => *text = revealed,
                Err(missing) => return Ok(Some(missing)),
            }
        }
        Ok(None)
    }

    /// A text with its secrets, or the secret that nobody knows.
    async fn reveal(
        &self,
        run: RunId,
        text: &str,
        step: &str,
    ) -> Result<Result<String, String>, Failure> {
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
                Piece::Secret(place) => match self.secret(run, place, step).await? {
                    None => return Ok(Err(self.name_for(run, (place.run, place.input)))),
                    Some(value) if place.quoted => {
                        revealed.push_str(&expression::quoted(&value));
                    }
                    Some(value) => revealed.push_str(&value),
                },
            }
        }
        Ok(Ok(revealed))
    }

    fn reveal_value<'v>(
        &'v self,
        run: RunId,
        value: &'v mut Value,
        step: &'v str,
    ) -> Boxed<'v, Result<Option<String>, Failure>> {
        Box::pin(async move {
            match value {
                Value::Str(text) if secret::concerns(text) => {
                    match self.reveal(run, text, step).await? {
                        Ok(revealed) => *value = Value::text(revealed),
                        Err(missing) => return Ok(Some(missing)),
                    }
                }
                Value::List(list) => {
                    for item in &mut Arc::make_mut(list).0 {
                        if let Some(missing) = self.reveal_value(run, item, step).await? {
                            return Ok(Some(missing));
                        }
                    }
                }
                Value::Map(map) => {
                    for item in Arc::make_mut(map).0.values_mut() {
                        if let Some(missing) = self.reveal_value(run, item, step).await? {
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
    pub(super) fn known_value(&self, family: RunId, value: &Value) -> Value {
        let known = |text: &str| {
            secret::concerns(text).then(|| {
                let pieces = secret::pieces(text).map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Broken => String::new(),
                    Piece::Secret(place) => {
                        let value = self.inner.vault.get(family, place.run, place.input);
                        value.unwrap_or_else(|| place.text.to_owned())
                    }
                });
                pieces.collect()
            })
        };
        secret::each_text(value, &known)
    }

    /// The secrets that some parameters have places for.
    fn known_in(&self, run: RunId, parameters: &Value) -> Vec<Secret> {
        let places = places_in(parameters);
        if places.is_empty() {
            return Vec::new();
        }
        let family = self.family(run);
        let known = places.into_iter().filter_map(|(run, input)| {
            let value = self.inner.vault.get(family, &run, &input)?;
            Some(Secret { run, input, value })
        });
        known.collect()
    }

    /// What a run reads in a terminal may be the secret of another run, which has told it the session: from
    /// now on it is a secret of those who have read it, too.
    fn overhear(&self, run: RunId, parameters: &Value, happening: &Happening) {
        let result = match happening {
            Happening::Completed { result, .. }
            | Happening::Failed { result, .. }
            | Happening::TimedOut { result, .. } => result,
            _ => return,
        };
        let mut sessions = BTreeSet::new();
        sessions_in(parameters, &mut sessions);
        sessions_in(result, &mut sessions);
        self.overhear_in(run, &sessions, result);
    }

    /// The same for something that some sessions have shown.
    pub(super) fn overhear_in(&self, run: RunId, sessions: &BTreeSet<&str>, shown: &Value) {
        let Some(terminals) = &self.inner.options.terminals else {
            return;
        };
        for session in sessions {
            let told = terminals.secrets(session);
            if told.is_empty() {
                continue;
            }
            let heard = std::cell::RefCell::new(Vec::new());
            secret::each_text(shown, &|text| {
                heard.borrow_mut().extend(told.told_by(text));
                None
            });
            for secret in heard.into_inner() {
                if !self.scrubber(run).knows(&secret.value) && !self.was_given(run, &secret.value) {
                    // Whoever was told it first may be gone.
                    self.inner.vault.keep(self.family(run), secret, true);
                }
            }
        }
    }

    /// Whether a run has a text from whoever started it, or who called it.
    fn was_given(&self, run: RunId, text: &str) -> bool {
        let quoted = Json::from(text).to_string();
        let quoted = &quoted[1..quoted.len() - 1];
        let mut run = Some(run);
        while let Some(this) = run {
            let start = self.start_of(this);
            let inputs = start.is_ok_and(|start| {
                let given = [&start.inputs, &start.variables];
                given
                    .iter()
                    .any(|it| it.to_json().to_string().contains(quoted))
            });
            let record = self.journal().run(this).ok();
            let program = record.as_ref().map(|it| self.program(it.definition));
            let definition = program.and_then(|it| serde_json::to_string(it.ok()?.graph()).ok());
            if inputs || definition.is_some_and(|it| it.contains(quoted)) {
                return true;
            }
            run = record.and_then(|it| it.parent);
        }
        false
    }

    /// What happened, without any secret that the run knows.
    pub(super) fn scrubbed(&self, run: RunId, happening: Happening) -> Happening {
        without(&self.scrubber(run), happening)
    }

    /// The same for what comes from a terminal, if that is what has happened.
    pub(super) fn scrubbed_in(&self, id: RunId, run: &Run, happening: Happening) -> Happening {
        let ended = happening.ends().and_then(|ended| run.action(ended));
        let in_terminal = ended.is_some_and(|action| match &action.what {
            Deed::Tool {
                tool,
                parameters,
                builtin: true,
            } if is_terminal(tool) => {
                self.overhear(id, parameters, &happening);
                true
            }
            Deed::Environment { session, .. } => {
                let parameters = Value::map([("session_id", Value::text(session))]);
                self.overhear(id, &parameters, &happening);
                false
            }
            _ => false,
        });
        match happening {
            Happening::Completed { action, result } if in_terminal => {
                let scrubber = self.scrubber(id);
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

/// The sessions that a value names.
fn sessions_in<'v>(value: &'v Value, sessions: &mut BTreeSet<&'v str>) {
    match value {
        Value::Map(map) => {
            sessions.extend(map.0.get("session_id").and_then(Value::as_str));
            let values = map.0.values();
            values.for_each(|value| sessions_in(value, sessions));
        }
        Value::List(list) => list.0.iter().for_each(|item| sessions_in(item, sessions)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
    }
}

/// What happened, without secrets.
pub(super) fn without(scrubber: &Scrubber, happening: Happening) -> Happening {
    match scrubber.is_empty() {
        true => happening,
        false => each_text(happening, &|text| scrubber.text(text)),
    }
}

/// The secrets that a text has places for.
fn places(text: &str) -> impl Iterator<Item = (String, String)> {
    secret::pieces(text).filter_map(|piece| match piece {
        Piece::Secret(place) => Some((place.run.to_owned(), place.input.to_owned())),
        Piece::Text(_) | Piece::Broken => None,
    })
}

fn places_in(value: &Value) -> BTreeSet<(String, String)> {
    let found = std::cell::RefCell::new(BTreeSet::new());
    secret::each_text(value, &|text| {
        found.borrow_mut().extend(places(text));
        None
    });
    found.into_inner()
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

fn masked_ending(ending: &Ending) -> Ending {
    let masked = |message: &String| secret::mask(message).into_owned();
    match ending {
        Ending::Failure(message) => Ending::Failure(masked(message)),
        Ending::Timeout(message) => Ending::Timeout(masked(message)),
        Ending::Stuck(message) => Ending::Stuck(masked(message)),
        Ending::Success | Ending::Skipped | Ending::Stopped => ending.clone(),
    }
}

/// An effect as whoever watches may see it.
pub(super) fn masked_effect(effect: &Effect) -> Effect {
    match effect {
        Effect::Act(action) => Effect::Act(masked_action(action)),
        Effect::Left {
            place,
            outcome,
            next,
        } => Effect::Left {
            place: place.clone(),
            outcome: masked_ending(outcome),
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
        Effect::Entered(_) | Effect::Sleep { .. } | Effect::Stop(_) | Effect::Yield => {
            effect.clone()
        }
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
