//! The sessions there are.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use flow_model::tools::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::audit::{Audit, Entry};
use super::environment::Snapshot;
use super::error::Error;
use super::lock;
use super::options::{Options, Size};
use super::private;
use super::program::Program;
use super::session::{Awaited, Opening, Session, Showing};
use crate::journal::RunId;
use crate::secret::{self, Scrubber, Secret};
use crate::value::{List, Value};

pub use super::session::Place;

/// When a screen is first looked at for what was typed; every look after it comes twice as late.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_millis(1280);

/// A registry of terminal sessions. Clones share it; when the last one is dropped, every session
/// and everything it started is killed.
#[derive(Clone)]
pub struct Terminals {
    inner: Arc<Inner>,
    /// Whose sessions are meant where none is named; everybody's when `None`.
    circle: Option<Arc<str>>,
    unnamed: Arc<Unnamed>,
    /// The run whose own the sessions are that are opened through this.
    owner: Option<RunId>,
    /// What the session is told through this that nobody else may read.
    told: Arc<[Secret]>,
    /// All that whoever uses this has to keep from others.
    pub(super) kept: Arc<Scrubber>,
    /// Until when a command is interrupted that whoever ran it no longer waits for.
    pub(super) interrupts_until: Option<u64>,
    /// Hears what such a command has written.
    pub(super) hears: Option<Hears>,
}

/// Hears a text.
pub(crate) type Hears = Arc<dyn Fn(String) + Send + Sync>;

/// What is meant where no session is named.
#[derive(Debug)]
pub(crate) enum Unnamed {
    /// The one opened last.
    Latest,
    /// The one opened last of those that are no run's own.
    LatestFree,
    /// One that whoever asks had, and that was closed.
    Closed(String),
    /// None: what is closed must be one's own.
    NoneToClose,
}

struct Inner {
    options: Options,
    audit: Option<Arc<Audit>>,
    /// What runs have told sessions and nobody else may read.
    secrets: Mutex<Secrets>,
    /// In the order they were opened.
    sessions: Mutex<Vec<Arc<Session>>>,
    /// Those that are being closed, until nothing of them is left.
    closing: Mutex<Vec<Arc<Session>>>,
    /// No session is opened any more.
    is_over: AtomicBool,
}

/// The secrets that sessions were told, by session.
#[derive(Default)]
struct Secrets {
    of: HashMap<String, Arc<Scrubber>>,
    /// Sessions that are closed, of which the last answers may be under way.
    closed: VecDeque<String>,
}

impl Secrets {
    /// Nobody reads any more what a session has shown that was closed before so many others.
    const MOST_CLOSED: usize = 256;

    fn close(&mut self, session: &str) {
        if self.of.contains_key(session) {
            self.closed.push_back(session.to_owned());
        }
        if self.closed.len() > Secrets::MOST_CLOSED
            && let Some(first) = self.closed.pop_front()
        {
            self.of.remove(&first);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for sessions in [&self.sessions, &self.closing] {
            for session in std::mem::take(&mut *lock(sessions)) {
                session.finish();
            }
        }
    }
}

impl std::fmt::Debug for Terminals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminals")
            .field("sessions", &self.sessions().len())
            .finish_non_exhaustive()
    }
}

impl Terminals {
    /// An empty registry.
    ///
    /// # Errors
    ///
    /// [`Error::Audit`] when the audit log cannot be opened.
    pub fn new(options: Options) -> Result<Terminals, Error> {
        let audit = options.audit.as_deref().map(Audit::open).transpose()?;
        let audit = audit.map(Arc::new);
        let inner = Inner {
            options,
            audit,
            secrets: Mutex::default(),
            sessions: Mutex::default(),
            closing: Mutex::default(),
            is_over: AtomicBool::new(false),
        };
        Ok(Terminals {
            inner: Arc::new(inner),
            circle: None,
            unnamed: Arc::new(Unnamed::Latest),
            owner: None,
            told: Arc::default(),
            kept: Arc::default(),
            interrupts_until: None,
            hears: None,
        })
    }

    /// The same registry for those who share a default: without a name they mean the session that
    /// was opened last among them, and never that of others. By name they reach every session.
    #[must_use]
    pub fn of(&self, circle: &str) -> Terminals {
        let circle = Some(Arc::from(circle));
        Terminals {
            circle,
            ..self.clone()
        }
    }

    /// The same registry for somebody who means this by naming no session.
    pub(crate) fn meaning(self, unnamed: Unnamed) -> Terminals {
        let unnamed = Arc::new(unnamed);
        Terminals { unnamed, ..self }
    }

    /// The same registry for a run: what it opens is its own from the first moment.
    pub(crate) fn owned_by(self, run: RunId) -> Terminals {
        let owner = Some(run);
        Terminals { owner, ..self }
    }

    /// The same registry for somebody who has secrets, and tells some of them to the session that is meant:
    /// from before it hears of them they are masked there, whoever asks.
    pub(crate) fn telling(self, told: Vec<Secret>, kept: Arc<Scrubber>) -> Terminals {
        let told = Arc::from(told);
        Terminals { told, kept, ..self }
    }

    /// The same registry for somebody who may give up what it does: a command that is dropped while
    /// it runs is interrupted, until its time is over (milliseconds since 1970). After that it goes
    /// on, as after any time-out.
    pub(crate) fn interrupting(self, until: Option<u64>) -> Terminals {
        Terminals {
            interrupts_until: Some(until.unwrap_or(u64::MAX)),
            ..self
        }
    }

    /// The same registry for somebody who wants to know what a command has written that is dropped while
    /// it runs.
    pub(crate) fn telling_what_is_left(self, hears: Hears) -> Terminals {
        Terminals {
            hears: Some(hears),
            ..self
        }
    }

    /// Its settings.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The ids of the sessions, in the order they were opened.
    pub fn sessions(&self) -> Vec<String> {
        lock(&self.inner.sessions)
            .iter()
            .map(|session| session.id.clone())
            .collect()
    }

    /// Whether there is a session of this id.
    pub fn exists(&self, session: &str) -> bool {
        lock(&self.inner.sessions)
            .iter()
            .any(|known| known.id == session)
    }

    /// The session that is meant where none is named.
    pub fn latest(&self) -> Option<String> {
        self.session(None).ok().map(|session| session.id.clone())
    }

    /// The runs that have sessions of their own.
    pub(crate) fn owners(&self) -> BTreeSet<RunId> {
        let sessions = lock(&self.inner.sessions);
        sessions.iter().filter_map(|it| it.owner()).collect()
    }

    /// The sessions that are a run's own, in the order they were opened.
    pub(crate) fn own_sessions(&self, run: RunId) -> Vec<String> {
        let sessions = lock(&self.inner.sessions);
        let own = sessions.iter().filter(|it| it.owner() == Some(run));
        own.map(|session| session.id.clone()).collect()
    }

    /// Makes sessions the own of another run, or nobody's.
    pub(crate) fn hand_over(&self, sessions: &[String], to: Option<RunId>) {
        for session in &*lock(&self.inner.sessions) {
            if sessions.contains(&session.id) {
                session.hand_over(to);
            }
        }
    }

    /// Whether there is a session of this id, and which there are when there is not.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`].
    pub fn expect(&self, session: &str) -> Result<(), Error> {
        self.session(Some(session)).map(|_| ())
    }

    /// The environment of a session's shell, as it was at the last prompt. Nothing is typed.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`]; [`Error::NoEnvironment`] when the session's program is not a shell
    /// that tells it, or has shown no prompt.
    pub fn environment(&self, session: &str) -> Result<Snapshot, Error> {
        self.session(Some(session))?.environment()
    }

    /// What a session shows now.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`].
    pub fn screen(&self, session: &str) -> Result<String, Error> {
        Ok(self.session(Some(session))?.visible())
    }

    /// Waits until the session's shell is at its prompt with all input read, for as long as
    /// `limit`, and says where it is then.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`].
    pub async fn prompt(&self, session: &str, limit: Duration) -> Result<Place, Error> {
        let session = self.session(Some(session))?;
        Ok(session.prompt(limit).await)
    }

    /// Gives a session's terminal another size.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`]; [`Error::Pty`] when the system refuses.
    pub fn resize(&self, session: &str, size: Size) -> Result<(), Error> {
        self.session(Some(session))?.resize(size)
    }

    /// Closes a session: asks its programs to end, then kills what is left. Says whether nothing
    /// of it is left.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`].
    pub async fn close(&self, session: &str) -> Result<bool, Error> {
        let session = self.session(Some(session))?;
        let closing = self.end(|known| known.id == session.id);
        let mut is_gone = true;
        for closed in closing {
            is_gone &= closed.await.unwrap_or(false);
        }
        Ok(is_gone)
    }

    /// Closes every session, all at once.
    pub async fn close_all(&self) {
        // With those that nobody may wait for any more.
        let others = lock(&self.inner.closing).clone();
        let mut closing = self.end(|_| true);
        closing.extend(others.into_iter().map(|session| self.end_one(session)));
        for closed in closing {
            let _ = closed.await;
        }
    }

    /// The same, and opens none any more: whoever is just about to is refused.
    pub async fn shut_down(&self) {
        self.inner.is_over.store(true, Ordering::SeqCst);
        self.close_all().await;
    }

    /// Closes those of some sessions that are open, all at once.
    pub(crate) async fn close_each(&self, ids: &[String]) {
        for closed in self.end(|session| ids.contains(&session.id)) {
            let _ = closed.await;
        }
    }

    /// Closes a session that nobody knows of, without waiting for it where that is possible.
    pub(super) fn discard(&self, session: &Arc<Session>) {
        if Handle::try_current().is_ok() {
            drop(self.end(|known| known.id == session.id));
            return;
        }
        let mut sessions = lock(&self.inner.sessions);
        sessions.retain(|known| known.id != session.id);
        drop(sessions);
        session.finish();
    }

    /// Takes sessions off the list and ends them, also when whoever asked for it goes away.
    fn end(&self, is_meant: impl Fn(&Session) -> bool) -> Vec<JoinHandle<bool>> {
        let ended: Vec<_> = {
            let mut sessions = lock(&self.inner.sessions);
            let ended: Vec<_> = sessions.extract_if(.., |it| is_meant(it)).collect();
            lock(&self.inner.closing).extend(ended.iter().cloned());
            ended
        };
        let ended = ended.into_iter();
        ended.map(|session| self.end_one(session)).collect()
    }

    fn end_one(&self, session: Arc<Session>) -> JoinHandle<bool> {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let is_gone = session.close().await;
            if let Some(inner) = inner.upgrade() {
                lock(&inner.closing).retain(|it| !Arc::ptr_eq(it, &session));
                lock(&inner.secrets).close(&session.id);
            }
            is_gone
        })
    }

    /// The session of this id, or the one opened last.
    pub(super) fn session(&self, id: Option<&str>) -> Result<Arc<Session>, Error> {
        let session = self.find(id)?;
        self.conceal(&session);
        Ok(session)
    }

    fn find(&self, id: Option<&str>) -> Result<Arc<Session>, Error> {
        let sessions = lock(&self.inner.sessions);
        let Some(id) = id else {
            let must_be_free = match &*self.unnamed {
                Unnamed::Latest => false,
                Unnamed::LatestFree => true,
                Unnamed::Closed(id) => return Err(Error::OwnClosed { id: id.clone() }),
                Unnamed::NoneToClose => return Err(Error::NoneToClose),
            };
            let mut own = sessions.iter().rev();
            let own = own.find(|session| {
                let is_near = self.circle.is_none() || session.circle == self.circle;
                is_near && !(must_be_free && session.owner().is_some())
            });
            return own.cloned().ok_or(match sessions.is_empty() {
                true => Error::NoneOpen,
                false => Error::NoneOwn,
            });
        };
        sessions
            .iter()
            .find(|session| session.id == id)
            .cloned()
            .ok_or_else(|| {
                let ids: Vec<_> = sessions.iter().map(|session| &*session.id).collect();
                let known = if ids.is_empty() {
                    "none is open".to_owned()
                } else {
                    format!("open: {}", ids.join(", "))
                };
                Error::NoSession {
                    id: id.to_owned(),
                    known,
                }
            })
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.inner.sessions).clone()
    }

    /// Starts a program in a new session.
    pub(super) fn start(
        &self,
        shell: &str,
        directory: Option<&str>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Arc<Session>, Error> {
        let options = &self.inner.options;
        let directory = self.directory(directory)?;
        let program = Program::find(shell, &directory)?;
        let mut policies = options.policies.iter();
        let refusal = policies.find_map(|it| it.refusal(shell, &program.path, &directory));
        if let Some(refusal) = refusal {
            return Err(Error::Refused(refusal));
        }
        let mut variables = vec![("TERM".to_owned(), "xterm-256color".to_owned())];
        for (name, value) in environment {
            let bad = |reason| Error::BadVariable {
                name: name.clone(),
                reason,
            };
            let unfit =
                |character: char| matches!(character, '=' | '\0') || character.is_whitespace();
            if name.is_empty() || name.contains(unfit) {
                return Err(bad(
                    "a name is not empty and has no blank, no `=` and no zero byte",
                ));
            }
            if value.contains('\0') {
                return Err(bad("its value contains a zero byte"));
            }
            variables.push((name.clone(), value.clone()));
        }
        let random = random();
        let opening = Opening {
            id: format!("t-{}", &random[..8]),
            circle: self.circle.clone(),
            owner: self.owner,
            nonce: random[8..].to_owned(),
            program,
            directory,
            environment: variables,
        };
        // Held while the program starts, so that the limit holds.
        let mut sessions = lock(&self.inner.sessions);
        if self.inner.is_over.load(Ordering::SeqCst) {
            return Err(Error::Over);
        }
        if sessions.len() >= options.max_sessions {
            return Err(Error::TooMany {
                limit: options.max_sessions,
                ended: sessions.iter().filter(|it| !it.is_running()).count(),
            });
        }
        let session = Session::open(opening, options)?;
        self.conceal(&session);
        sessions.push(Arc::clone(&session));
        private::sweep_once();
        Ok(session)
    }

    fn directory(&self, asked: Option<&str>) -> Result<PathBuf, Error> {
        let base = match &self.inner.options.directory {
            Some(directory) => directory.clone(),
            None => std::env::current_dir().map_err(|error| Error::BadDirectory {
                directory: PathBuf::from("."),
                reason: error.to_string(),
            })?,
        };
        if asked == Some("") {
            return Err(Error::BadDirectory {
                directory: PathBuf::from("\"\""),
                reason: "it has no name; leave `working_directory` out for the usual one"
                    .to_owned(),
            });
        }
        let directory = match asked {
            Some(asked) => base.join(asked),
            None => base,
        };
        let bad = |reason: String| Error::BadDirectory {
            directory: directory.clone(),
            reason,
        };
        let found = directory.canonicalize().map_err(|error| {
            let hint = match asked.is_some_and(|asked| asked.starts_with('~')) {
                true => "; `~` is not a directory here: write out the home directory",
                false => "",
            };
            bad(format!("{error}{hint}"))
        })?;
        if !found.is_dir() {
            return Err(bad("it is not a directory".to_owned()));
        }
        // Entering it is what a program's start would fail at, in words nobody sees.
        rustix::fs::access(&found, rustix::fs::Access::EXEC_OK)
            .map_err(|error| bad(error.to_string()))?;
        Ok(found)
    }

    /// Masks what a session is told from now on, in the audit log and in what is told of it.
    fn conceal(&self, session: &Session) {
        if self.told.is_empty() {
            return;
        }
        let mut secrets = lock(&self.inner.secrets);
        let known = secrets.of.entry(session.id.clone()).or_default();
        for secret in &*self.told {
            if !known.knows(&secret.value) {
                Arc::make_mut(known).add(&secret.run, &secret.input, &secret.value);
                session.conceal(Arc::clone(known));
            }
        }
    }

    /// The secrets that a session was told.
    pub(crate) fn secrets(&self, session: &str) -> Arc<Scrubber> {
        let secrets = lock(&self.inner.secrets);
        secrets.of.get(session).cloned().unwrap_or_default()
    }

    /// An answer without the secrets that runs have told the sessions it is about. A run itself is given
    /// them, and keeps them from everybody.
    #[must_use]
    pub fn masked<T: Serialize + DeserializeOwned>(&self, answer: T) -> T {
        if lock(&self.inner.secrets).of.is_empty() || self.owner.is_some() {
            return answer;
        }
        let masked = serde_json::to_value(&answer).map(|answer| {
            let answer = Value::from(&answer);
            self.masked_value(&answer).to_json()
        });
        masked.and_then(serde_json::from_value).unwrap_or(answer)
    }

    fn masked_value(&self, answer: &Value) -> Value {
        let Value::Map(map) = answer else {
            return answer.clone();
        };
        if let Some(Value::List(sessions)) = map.0.get("sessions") {
            let sessions = sessions.0.iter().map(|session| self.masked_value(session));
            let sessions = Value::List(Arc::new(List(sessions.collect())));
            let mut map = (**map).clone();
            map.0.insert(Arc::from("sessions"), sessions);
            return Value::Map(Arc::new(map));
        }
        let session = map.0.get("session_id").and_then(Value::as_str);
        let secrets = self.secrets(session.unwrap_or_default());
        if secrets.is_empty() {
            return answer.clone();
        }
        secret::each_written(answer, &|text| {
            let scrubbed = secrets.text(text)?;
            Some(secret::mask(&scrubbed).into_owned())
        })
    }

    /// Input as it is recorded.
    fn entry(&self, session: &Session, tool: &'static str, text: &str, keys: &[Key]) -> Entry {
        let scrubbed = self.secrets(&session.id).text(text);
        let masked = scrubbed.map(|text| secret::mask(&text).into_owned());
        Entry::new(&session.id, tool, text, masked, keys)
    }

    /// Writes a command to the audit log, if there is one. It is typed at a prompt or not at all.
    pub(super) fn record_command(
        &self,
        session: &Session,
        command: &str,
        keys: &[Key],
    ) -> Result<(), Error> {
        let Some(audit) = &self.inner.audit else {
            return Ok(());
        };
        let entry = self.entry(session, "run_command", command, keys);
        match session.showing() {
            Showing::Shown | Showing::Unsure => audit.record(&entry),
            Showing::Hidden => audit.record_hidden(&entry),
        }
    }

    /// Writes an input to the audit log, if there is one: by its length where it may be a secret,
    /// and as it is once it is shown.
    pub(super) fn record_input(
        &self,
        session: &Arc<Session>,
        text: &str,
        keys: &[Key],
    ) -> Result<(), Error> {
        let Some(audit) = &self.inner.audit else {
            return Ok(());
        };
        let entry = self.entry(session, "send_input", text, keys);
        match session.showing() {
            Showing::Shown => return audit.record(&entry),
            Showing::Hidden => return audit.record_hidden(&entry),
            Showing::Unsure => {}
        }
        let awaited = session.await_shown(&entry.text());
        audit.record_hidden(&entry)?;
        if let (Some(awaited), Ok(runtime)) = (awaited, Handle::try_current()) {
            let audit = Arc::clone(audit);
            let session = Arc::downgrade(session);
            runtime.spawn(async move {
                if shown(session, awaited).await {
                    // What cannot be written stays recorded by its length.
                    let _ = audit.record_shown(&entry);
                }
            });
        }
        Ok(())
    }
}

/// Waits until a typed text is shown; says whether it was.
async fn shown(session: Weak<Session>, awaited: Awaited) -> bool {
    let mut pause = FIRST_LOOK;
    while pause <= LAST_LOOK {
        tokio::time::sleep(pause).await;
        let Some(session) = session.upgrade() else {
            return false;
        };
        if session.has_shown(&awaited) {
            return true;
        }
        pause *= 2;
    }
    false
}

/// Letters that nobody can foresee.
fn random() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";
    let mut bytes = [0; 32];
    // A system without randomness is one on which nothing here is secret.
    let _ = getrandom::fill(&mut bytes);
    bytes
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(byte % 32)]))
        .collect()
}
