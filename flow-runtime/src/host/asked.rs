//! Questions that are asked no longer, and what became of them.

use std::borrow::Cow;

use super::deed::called;
use super::driver::Driver;
use super::local::{Error, Host};
use super::recorded::Recorded;
use crate::journal::{self, RunId};
use crate::run::{ActionId, Deed, Effect, Happening, Run, Status};
use crate::secret;

/// Something that a run, or one that it has called, has asked.
#[derive(Clone)]
struct Question {
    run: RunId,
    action: ActionId,
    /// Its name among all that the run has handed out.
    step: String,
    /// The same as progress and history show it.
    place: String,
    /// The id of its step in its workflow.
    node: String,
}

impl Host {
    /// Why a step of a run, or of one that it has called, cannot be answered although it once asked
    /// something: what the journal says became of that. Without a name the step is meant that
    /// alone has ever asked. `None` where no such step has asked anything, or it still does.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn asked_before(&self, run: RunId, step: Option<&str>) -> Result<Option<Error>, Error> {
        let asked = self.questions(run)?;
        let meant = match step {
            None => match &asked[..] {
                [only] => Some(only),
                _ => None,
            },
            Some(step) => {
                let last = |is_meant: fn(&Question, &str) -> bool| {
                    asked.iter().rev().find(|it| is_meant(it, step))
                };
                last(|it, step| it.step == step)
                    .or_else(|| last(|it, step| it.place == step))
                    .or_else(|| last(|it, step| it.node == step))
            }
        };
        let Some(meant) = meant else {
            return Ok(None);
        };
        let driver = Driver::open(self.clone(), meant.run)?;
        if driver.run.action(meant.action).is_some() {
            return Ok(None);
        }
        let place = Some(meant.place.clone());
        self.no_longer_asked(meant.run, &driver.run, meant.action, place)
            .map(Some)
    }

    /// What a run and those it has called have asked so far, in the order of the run's own steps.
    fn questions(&self, run: RunId) -> Result<Vec<Question>, Error> {
        let program = self.program(self.journal().run(run)?.definition)?;
        let mut replayed = Run::new(program);
        let mut asked: Vec<Question> = Vec::new();
        let events = self.journal().events(run, 1.., usize::MAX)?;
        for recorded in Recorded::all(&events)? {
            for effect in recorded.apply(&mut replayed, None)? {
                let Effect::Act(action) = effect else {
                    continue;
                };
                let (step, place) = (replayed.step_name(&action), action.name());
                if let Deed::Call { .. } = action.what {
                    let below = match self.questions(called(run, &action)) {
                        Err(Error::Journal(journal::Error::NoSuchRun { .. })) => continue,
                        below => below?.into_iter(),
                    };
                    asked.extend(below.map(|below| Question {
                        step: format!("{step}/{}", below.step),
                        place: format!("{place}/{}", below.place),
                        ..below
                    }));
                } else if action.what.is_asked() {
                    asked.push(Question {
                        run,
                        action: action.id,
                        step,
                        place,
                        node: action.node,
                    });
                }
            }
        }
        Ok(asked)
    }

    /// Why nothing can be answered under a number: what the journal says became of the question.
    /// The step is told by its name in its own run where none is given.
    pub(super) fn no_longer_asked(
        &self,
        id: RunId,
        run: &Run,
        asked: ActionId,
        name: Option<String>,
    ) -> Result<Error, Error> {
        let own = || -> Result<Option<String>, Error> {
            let wanted = self.history(id)?.into_iter();
            let mut names = wanted.filter_map(|(_, effect)| match effect {
                Effect::Act(action) if action.id == asked => Some(action.name()),
                _ => None,
            });
            Ok(names.next())
        };
        let step = match name {
            Some(name) => Some(name),
            None => own()?,
        };
        let how = match self.answer_to(id, asked)? {
            Some(Happening::Completed { result, .. }) => {
                let result = secret::mask_value(&result).to_string();
                format!("has been answered already: {}", shortened(&result))
            }
            Some(Happening::Done { .. }) => "has been done already".to_owned(),
            Some(Happening::Failed { error, .. }) => {
                let reason = secret::mask(&error.message);
                format!("has failed already: {}", shortened(&reason))
            }
            Some(Happening::TimedOut { .. }) => {
                "is no longer asked, because its time was over".to_owned()
            }
            Some(Happening::Declined { .. }) => "has been declined already".to_owned(),
            _ => {
                let ended = match run.status() {
                    Status::Running => "went on without it",
                    Status::Completed => "has completed",
                    Status::Failed => "has failed",
                    Status::Cancelled => "was cancelled",
                };
                format!("is no longer asked, because the run {ended}")
            }
        };
        Ok(Error::NotAsked {
            step: step.unwrap_or_else(|| asked.0.to_string()),
            how,
        })
    }

    /// What was recorded as the answer to an action: the first that ended it.
    pub(super) fn answer_to(
        &self,
        run: RunId,
        asked: ActionId,
    ) -> Result<Option<Happening>, Error> {
        let events = self.journal().events(run, 1.., usize::MAX)?;
        let mut recorded = Recorded::all(&events)?.into_iter();
        let answer = recorded.find(|it| it.event.what.answers() == Some(asked));
        Ok(answer.map(|it| it.event.what))
    }
}

/// The beginning of a text that is told in a sentence.
fn shortened(text: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
