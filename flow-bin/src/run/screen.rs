//! Progress of a run: live lines on a terminal, plain ones elsewhere, or objects for a program.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flow_model::graph::{Form, Graph, Kind, Node};
use flow_runtime::host::{Host, Watch};
use flow_runtime::journal::RunId;
use flow_runtime::run::{Deed, Effect, Ending, Place, time};
use serde_json::{Value, json};

use super::person::shown;
use crate::output::{Paint, clean, cut};

/// Lines that are drawn anew at most.
const MOST_LIVE: usize = 8;
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const BETWEEN_FRAMES: Duration = Duration::from_millis(100);

/// How progress is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Not at all.
    Nothing,
    /// A line on standard error for every step that ends.
    Lines,
    /// The same, and a moving line for every step under way.
    Live,
    /// An object a line on standard output.
    Objects,
}

/// Where progress and questions are shown, one at a time.
pub(crate) struct Screen {
    told: Told,
    pub(super) paint: Paint,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    under_way: Vec<UnderWay>,
    /// What the steps failed with that were left last, by the frames they belong to.
    failed: HashMap<(RunId, u32), String>,
    /// The steps that called runs belong to, as in `all.1/sub`.
    callers: HashMap<RunId, String>,
    /// Live lines on the terminal now.
    drawn: usize,
    frame: usize,
    /// Somebody is being asked; nothing moves meanwhile.
    asking: bool,
}

impl Shown {
    /// What people know a step of a run by, with the calls that led to the run.
    fn named(&self, run: RunId, step: &str) -> String {
        match self.callers.get(&run) {
            Some(caller) => format!("{caller}/{step}"),
            None => step.to_owned(),
        }
    }
}

struct UnderWay {
    run: RunId,
    place: Place,
    title: String,
    since: Instant,
}

impl Screen {
    pub(crate) fn new(told: Told, paint: Paint) -> Arc<Self> {
        let screen = Arc::new(Screen {
            told,
            paint,
            shown: Mutex::default(),
        });
        if told == Told::Live {
            let moving = Arc::downgrade(&screen);
            thread::spawn(move || {
                while let Some(screen) = moving.upgrade() {
                    screen.turn();
                    drop(screen);
                    thread::sleep(BETWEEN_FRAMES);
                }
            });
        }
        screen
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws the live lines once more.
    fn turn(&self) {
        let mut shown = self.shown();
        if !shown.asking {
            shown.frame += 1;
            self.draw(&mut shown, "");
        }
    }

    /// Replaces the live lines by a text and the lines as they are now.
    fn draw(&self, shown: &mut Shown, before: &str) {
        let mut text = String::new();
        if shown.drawn > 0 {
            text.push_str(&format!("\x1b[{}A\x1b[J", shown.drawn));
        }
        shown.drawn = 0;
        text.push_str(before);
        if self.told == Told::Live && !shown.asking {
            let width = terminal_size::terminal_size_of(io::stderr())
                .map_or(80, |(width, _)| usize::from(width.0));
            let spinner = FRAMES[shown.frame % FRAMES.len()];
            for step in shown.under_way.iter().take(MOST_LIVE) {
                let line = format!("{} {}", step.title, elapsed(step.since.elapsed()));
                let line = cut(&line, width.saturating_sub(3));
                text.push_str(&format!("{} {line}\n", self.paint.cyan(spinner)));
                shown.drawn += 1;
            }
        }
        // Nobody may be looking.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Tells something beside the progress.
    pub(crate) fn say(&self, text: &str) {
        let mut shown = self.shown();
        self.draw(&mut shown, &format!("{text}\n"));
    }

    /// Nothing moves until [`Screen::answered`].
    pub(super) fn ask(&self, text: &str) {
        let mut shown = self.shown();
        shown.asking = true;
        self.draw(&mut shown, text);
    }

    pub(super) fn answered(&self) {
        self.shown().asking = false;
    }

    /// Takes the live lines away for good.
    pub(crate) fn end(&self) {
        let mut shown = self.shown();
        shown.under_way.clear();
        // What follows does not go on the line of a question that nobody answered.
        let before = if shown.asking { "\n" } else { "" };
        shown.asking = false;
        self.draw(&mut shown, before);
    }

    fn object(&self, mut object: Value) {
        object["at"] = now().into();
        let mut stdout = io::stdout().lock();
        // Whoever stopped reading does not stop the run.
        let _ = writeln!(stdout, "{object}").and_then(|()| stdout.flush());
    }

    fn entered(&self, run: RunId, graph: &Graph, place: &Place) {
        let node = node(graph, &place.node);
        if self.told == Told::Objects {
            return self.object(json!({
                "event": "step_started",
                "run_id": run.to_string(),
                "workflow": graph.name,
                "step": place.name(),
                "type": node.map(|node| node.kind.word()),
                "description": node.and_then(|node| node.description.as_deref()),
                "frame": place.frame,
            }));
        }
        if !node.is_some_and(|node| shows(graph, node)) {
            return;
        }
        let mut shown = self.shown();
        let name = shown.named(run, &place.name());
        let title = match node.and_then(|node| node.description.as_deref()) {
            Some(description) => format!("{name}  {}", clean(description)),
            None => name,
        };
        shown.under_way.push(UnderWay {
            run,
            place: place.clone(),
            title,
            since: Instant::now(),
        });
        if self.told == Told::Live {
            self.draw(&mut shown, "");
        }
    }

    fn left(&self, run: RunId, graph: &Graph, place: &Place, outcome: &Ending, next: Option<&str>) {
        if self.told == Told::Objects {
            return self.object(json!({
                "event": "step_ended",
                "run_id": run.to_string(),
                "workflow": graph.name,
                "step": place.name(),
                "frame": place.frame,
                "outcome": outcome.word(),
                "error": outcome.error(),
                "next": next,
            }));
        }
        let mut shown = self.shown();
        let of_this = |step: &UnderWay| {
            let same = (step.place.frame, &step.place.node) == (place.frame, &place.node);
            step.run == run && same
        };
        let begun = shown.under_way.iter().position(of_this);
        let begun = begun.map(|index| shown.under_way.remove(index));
        let error = outcome.error();
        let last = match error {
            Some(error) => shown.failed.insert((run, place.frame), error.to_owned()),
            None => shown.failed.remove(&(run, place.frame)),
        };
        // What fails in a container is told of the step, right before.
        let is_container = node(graph, &place.node).is_some_and(|node| node.kind.is_kept_by_run());
        let is_told = is_container && last.as_deref() == error;
        if begun.is_none() && (error.is_none() || is_told) {
            return;
        }
        let name = shown.named(run, &place.name());
        let title = begun.as_ref().map_or(&name, |step| &step.title);
        let took = begun.as_ref().map_or(String::new(), |step| {
            format!(" {}", self.paint.dim(&elapsed(step.since.elapsed())))
        });
        let line = match outcome {
            Ending::Success => format!("{} {title}{took}\n", self.paint.green("✓")),
            Ending::Skipped => format!("{} {title} (skipped)\n", self.paint.dim("-")),
            Ending::Stopped => format!("{} {title} (stopped)\n", self.paint.dim("-")),
            Ending::Failure(error) | Ending::Timeout(error) | Ending::Stuck(error) => {
                let said = error.strip_prefix(&format!("`{name}`: "));
                let said = clean(said.unwrap_or(error));
                format!("{} {title}: {said}{took}\n", self.paint.red("✗"))
            }
        };
        self.draw(&mut shown, &line);
    }
}

impl Watch for Screen {
    fn effect(&self, run: RunId, graph: &Graph, effect: &Effect) {
        if let Effect::Told { place, message } = effect {
            self.say(&shown(message));
            if self.told == Told::Objects {
                self.object(json!({
                    "event": "message",
                    "run_id": run.to_string(),
                    "workflow": graph.name,
                    "step": place.name(),
                    "frame": place.frame,
                    "message": message,
                }));
            }
        }
        if let Effect::Act(action) = effect
            && matches!(action.what, Deed::Call { .. })
        {
            let mut shown = self.shown();
            let caller = shown.named(run, &action.name());
            shown.callers.insert(Host::called_by(run, action), caller);
        }
        if self.told == Told::Nothing {
            return;
        }
        match effect {
            Effect::Entered(place) => self.entered(run, graph, place),
            Effect::Left {
                place,
                outcome,
                next,
            } => self.left(run, graph, place, outcome, next.node()),
            Effect::Act(action) if self.told == Told::Objects => {
                let mut object = json!({
                    "event": "action",
                    "run_id": run.to_string(),
                    "workflow": graph.name,
                    "step": action.name(),
                    "frame": action.frame,
                    "attempt": action.attempt,
                    "key": action.key,
                });
                if let Deed::Prompt { message, .. } = &action.what {
                    object["message"] = json!(message);
                }
                self.object(object);
            }
            Effect::Act(_)
            | Effect::Told { .. }
            | Effect::Sleep { .. }
            | Effect::Stop(_)
            | Effect::Yield
            | Effect::Finish(_) => {}
        }
    }

    fn output(&self, run: RunId, step: &str, text: &[u8]) {
        if self.told == Told::Objects {
            self.object(json!({
                "event": "output",
                "run_id": run.to_string(),
                "step": step,
                "text": String::from_utf8_lossy(text),
            }));
        }
    }
}

/// A node by its id, wherever it stands.
fn node<'g>(graph: &'g Graph, id: &str) -> Option<&'g Node> {
    graph.nodes().find(|node| node.id == id)
}

/// Whether a node is worth a line: every state, and steps that take time.
fn shows(graph: &Graph, node: &Node) -> bool {
    graph.form == Form::States
        || match &node.kind {
            Kind::Condition { .. }
            | Kind::While { .. }
            | Kind::Loop { .. }
            | Kind::Jump(_)
            | Kind::Goto { .. }
            | Kind::Return { .. }
            | Kind::SetState => false,
            Kind::FanOut(_)
            | Kind::Call(_)
            | Kind::Shell(_)
            | Kind::Tool { .. }
            | Kind::Prompt(_)
            | Kind::Wait { .. }
            | Kind::Delegate { .. } => true,
        }
}

/// The time now, as text.
fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    time::iso(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A time that has passed, as people say it.
pub(crate) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", time.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}
