//! Where the values of a step come from: its templates as written, with what each place in them
//! stands for. For people and agents that want to understand a step; nothing depends on it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use flow_model::expression::{Piece, pieces, rebrace};
use flow_model::graph::{Expression, Kind, Node, StatePath, Template, Tier};
use serde::{Deserialize, Serialize};

use super::event::Failure;
use super::frame::{Frame, Item, Waits};
use super::path::after_others;
use super::view::View;
use super::{Action, ActionId, Data, Deed, Run, Tasks};
use crate::value::Value;

/// Words whose value differs from one evaluation to the next.
const FLEETING: [&str; 4] = ["now", "uuid", "Date", "random"];
/// Bytes of a value that is shown whole.
const SHOWN: u64 = 256;

/// Where the values of a step come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// What the step is made from, as its author wrote it; none where nothing had to be evaluated.
    pub written: Option<String>,
    /// What each `{{ … }}` stands for. Long values are named by their size.
    pub replacements: Vec<(String, Value)>,
}

/// The steps of a program as they are written. Each is taken apart once: an evaluator knows an
/// expression by the place where it stands.
#[derive(Default)]
pub(super) struct Origins(Mutex<HashMap<usize, Arc<Written>>>);

/// A step as its author wrote it.
struct Written {
    whole: Option<String>,
    /// Every `{{ … }}`, as written and as an expression.
    places: Vec<(String, Template)>,
    /// How many of them are of the telling template.
    of_first: usize,
}

impl Origins {
    /// A node of the program's graph.
    fn of(&self, node: &Node) -> Arc<Written> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = known.entry(std::ptr::from_ref(node).addr());
        Arc::clone(written.or_insert_with(|| {
            let templates = sources(&node.kind);
            let mut places = Vec::new();
            let mut of_first = 0;
            for (index, template) in templates.iter().enumerate() {
                interpolations(template, &mut places);
                if index == 0 {
                    of_first = places.len();
                }
            }
            let whole = templates.first().filter(|_| !places.is_empty());
            Arc::new(Written {
                whole: whole.map(|template| as_written(template)),
                places,
                of_first,
            })
        }))
    }
}

impl Run {
    /// Where the values of an action under way come from, as they were when it began to wait.
    #[must_use]
    pub fn origin(&self, action: &Action) -> Origin {
        let kept = self.data().and_then(|data| data.origins.get(&action.id));
        kept.cloned().unwrap_or_else(|| self.origin_now(action))
    }

    /// Keeps where the values of everything come from that has begun to wait since a number.
    pub(super) fn keep_origins(&mut self, since: u64) {
        let Some(data) = self.data().filter(|data| data.start.agent_driven) else {
            return;
        };
        let new = (since + 1..=data.next_action).map(ActionId);
        let new = new.filter_map(|id| {
            let origin = match self.action(id) {
                Some(action) if action.what.is_for_agent() => self.origin_now(action),
                Some(_) => return None,
                None => self.origin_of_tasks_now(&self.tasks(id)?),
            };
            Some((id, origin))
        });
        let new: Vec<(ActionId, Origin)> = new.collect();
        if let Some(data) = &mut self.data {
            let Data {
                origins, waiting, ..
            } = data;
            origins.extend(new);
            origins.retain(|id, _| waiting.contains_key(id));
        }
    }

    fn origin_now(&self, action: &Action) -> Origin {
        // What is judged is a result, not what the step was made from.
        if let Deed::Judge { .. } = action.what {
            return Origin::default();
        }
        let node = self.node(action);
        let frame = self.data().and_then(|data| data.frames.get(&action.frame));
        match (node, frame) {
            (Some(node), Some(frame)) => match handed_item(frame, action) {
                Some(item) => self.origin_of_item(frame, node, item),
                None => self.origin_of(frame, node),
            },
            _ => Origin::default(),
        }
    }

    /// Where the values of an item come from that an agent gets whole: it is nobody else's business
    /// what the other items are.
    fn origin_of_item(&self, frame: &Frame, node: &Node, item: Item) -> Origin {
        let Kind::FanOut(fan) = &node.kind else {
            return Origin::default();
        };
        let Some(prompt) = &fan.prompt else {
            return Origin {
                written: None,
                replacements: vec![("{{ item }}".to_owned(), shown(item.value))],
            };
        };
        let written = self.program().origins.of(node);
        let places = written.places.iter().skip(written.of_first);
        let replacements: Vec<(String, Value)> = places
            .filter_map(|(text, place)| {
                let value = self.value_now(frame, node, place, Some(&item))?;
                Some((text.clone(), value))
            })
            .collect();
        Origin {
            written: (!replacements.is_empty()).then(|| as_written(prompt)),
            replacements,
        }
    }

    /// Where the items of a fan-out come from.
    #[must_use]
    pub fn origin_of_tasks(&self, tasks: &Tasks<'_>) -> Origin {
        let kept = self.data().and_then(|data| data.origins.get(&tasks.id));
        kept.cloned()
            .unwrap_or_else(|| self.origin_of_tasks_now(tasks))
    }

    fn origin_of_tasks_now(&self, tasks: &Tasks<'_>) -> Origin {
        let frame = self.data().and_then(|data| data.frames.get(&tasks.frame));
        frame.map_or_else(Origin::default, |frame| self.origin_of(frame, tasks.node))
    }

    /// Where the result of an action under way goes: its path, with all that is known before there
    /// is a result. What depends on the result stays as written.
    #[must_use]
    pub fn target(&self, action: &Action, path: &StatePath) -> String {
        let tier = match path.tier {
            Tier::Raw => "raw",
            Tier::Computed => "computed",
            Tier::State => "state",
        };
        let segments = path.segments.iter().map(|segment| {
            let known = self.known_now(action, segment);
            known.map_or_else(
                || format!(".{}", as_written(segment)),
                |value| after_others(&super::machine::plain(&value)),
            )
        });
        std::iter::once(tier.to_owned()).chain(segments).collect()
    }

    fn known_now(&self, action: &Action, template: &Template) -> Option<Value> {
        let data = self.data()?;
        let frame = data.frames.get(&action.frame)?;
        if reads(template, &["result"]) {
            return None;
        }
        let view = self.view_of(data, frame, self.node(action)?)?;
        self.program().evaluator.render(template, &view).ok()
    }

    fn view_of<'a>(&'a self, data: &'a Data, frame: &'a Frame, node: &'a Node) -> Option<View<'a>> {
        Some(View {
            graph: self.program().graph(),
            dependents: &self.program().dependents,
            data,
            frame: Some(frame),
            needs: node.needs_state.as_deref(),
            error: None,
            result: None,
            locals: &[],
            item: None,
            has_state: true,
            at: frame.step.as_ref()?.since,
            seed: 0,
        })
    }

    fn origin_of(&self, frame: &Frame, node: &Node) -> Origin {
        let written = self.program().origins.of(node);
        let places = written.places.iter();
        let replacements = places.filter_map(|(text, place)| {
            let value = self.value_now(frame, node, place, None)?;
            Some((text.clone(), value))
        });
        Origin {
            replacements: replacements.collect(),
            written: written.whole.clone(),
        }
    }

    /// What an expression of a step stands for, if that can be said again.
    fn value_now(
        &self,
        frame: &Frame,
        node: &Node,
        place: &Template,
        item: Option<&Item>,
    ) -> Option<Value> {
        let data = self.data()?;
        let Template::Expression(Expression { source, .. }) = place else {
            return None;
        };
        if FLEETING.iter().any(|word| source.contains(word)) {
            return None;
        }
        let graph = self.program().graph();
        let mut inputs = graph.inputs.iter().flat_map(|fields| fields.iter());
        if inputs.any(|field| field.secret && source.contains(field.name.as_ref())) {
            return Some(Value::text("***"));
        }
        let mut view = self.view_of(data, frame, node)?;
        view.item = item;
        let error = frame.error.as_ref().map(Failure::to_value);
        view.error = error.as_ref();
        self.program()
            .evaluator
            .render(place, &view)
            .ok()
            .map(shown)
    }
}

/// A value, or what it is where it is long.
fn shown(value: Value) -> Value {
    let size = value.size();
    if size <= SHOWN {
        value
    } else {
        Value::text(format!("({}, {size} bytes)", value.noun()))
    }
}

/// The item that an action hands to an agent whole.
fn handed_item(frame: &Frame, action: &Action) -> Option<Item> {
    let Waits::Children(children) = &frame.step.as_ref()?.waits else {
        return None;
    };
    let mut handed = children.handed.iter();
    let (index, _) = handed.find(|(_, handed)| handed.id == action.id)?;
    let items = children.items.as_list()?;
    Some(Item {
        value: items.get(*index)?.clone(),
        index: *index,
        length: items.len(),
    })
}

/// Whether a template depends on the item of a loop.
pub(super) fn reads_item(template: &Template) -> bool {
    reads(template, &["item", "loop"])
}

/// Whether a template reads one of these names.
fn reads(template: &Template, names: &[&str]) -> bool {
    roots(template).iter().any(|root| names.contains(&&**root))
}

/// The first names of everything that a template reads.
pub(super) fn roots(template: &Template) -> Vec<String> {
    let analysis = match template {
        Template::Expression(expression) => {
            flow_model::expression::expression(&expression.source, expression.dialect)
        }
        Template::Text(text) | Template::Command(text) | Template::Pattern(text) => {
            flow_model::expression::template(&text.source, text.dialect)
        }
        Template::Literal(_) => return Vec::new(),
        Template::List(items) => return items.iter().flat_map(roots).collect(),
        Template::Map(entries) => return entries.iter().flat_map(|(_, it)| roots(it)).collect(),
    };
    let reads = analysis.reads.iter();
    reads
        .filter_map(|read| read.path.first().map(ToString::to_string))
        .collect()
}

/// The templates that a step is made from, the telling one first.
fn sources(kind: &Kind) -> Vec<&Template> {
    match kind {
        Kind::Shell(shell) => {
            let rest = shell.env.iter().map(|(_, value)| value);
            let rest = rest.chain(&shell.working_directory).chain(&shell.reason);
            std::iter::once(&shell.command).chain(rest).collect()
        }
        Kind::Tool { parameters, .. } => vec![parameters],
        Kind::Prompt(prompt) => std::iter::once(&prompt.message)
            .chain(&prompt.options)
            .collect(),
        Kind::Delegate { instructions, .. } => vec![instructions],
        Kind::FanOut(fan) => std::iter::once(&fan.items).chain(&fan.prompt).collect(),
        Kind::Condition { .. }
        | Kind::While { .. }
        | Kind::Loop { .. }
        | Kind::Jump(_)
        | Kind::Goto { .. }
        | Kind::Return { .. }
        | Kind::SetState
        | Kind::Call(_)
        | Kind::Wait { .. } => Vec::new(),
    }
}

/// Every `{{ … }}` of a template, each once.
fn interpolations(template: &Template, found: &mut Vec<(String, Template)>) {
    let mut add = |text: String, expression: Expression| {
        if found.iter().all(|(known, _)| *known != text) {
            found.push((text, Template::Expression(expression)));
        }
    };
    match template {
        Template::Literal(_) => {}
        Template::Expression(expression) => {
            add(as_written(template), expression.clone());
        }
        Template::Text(text) | Template::Command(text) | Template::Pattern(text) => {
            let source = text.source.as_ref();
            for piece in pieces(source, text.dialect) {
                if let Piece::Interpolation(tag) = piece {
                    let inner = source[tag.inner].to_owned();
                    let expression = Expression {
                        source: inner.into(),
                        dialect: text.dialect,
                    };
                    add(rebrace(&source[tag.range]).into_owned(), expression);
                }
            }
        }
        Template::List(items) => items.iter().for_each(|item| interpolations(item, found)),
        Template::Map(entries) => {
            let values = entries.iter().map(|(_, value)| value);
            values.for_each(|value| interpolations(value, found));
        }
    }
}

/// A template as its author wrote it.
#[must_use]
pub fn as_written(template: &Template) -> String {
    match template {
        Template::Literal(literal) => match Value::from(literal) {
            Value::Str(text) => text.to_string(),
            other => other.to_string(),
        },
        Template::Expression(expression) => {
            let source = expression.source.trim();
            match rebrace(source) {
                Cow::Borrowed(source) => format!("{{{{ {source} }}}}"),
                Cow::Owned(variable) => variable,
            }
        }
        Template::Text(expression)
        | Template::Command(expression)
        | Template::Pattern(expression) => rebrace(&expression.source).into_owned(),
        Template::List(items) => {
            let items: Vec<String> = items.iter().map(as_written).collect();
            format!("[{}]", items.join(", "))
        }
        Template::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| format!("{key}: {}", as_written(value)));
            let entries: Vec<String> = entries.collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}
