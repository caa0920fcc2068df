//! Answers about runs that stay short enough for an agent: long texts are shown by their ends, long
//! lists by their beginning, and each says where all of it is read.

use serde_json::{Map, Value};

/// Characters of one text among values, which are answered as they are up to here.
const VALUE: usize = 16_000;
/// Characters of one text in a log.
const LOGGED: usize = 4_000;
/// Characters of one text of something that stands whole elsewhere in the same answer, or is asked
/// for by its name.
const BRIEF: usize = 1_000;
/// Bytes of values in one answer.
const VALUES: usize = 40_000;
/// Bytes of values and of a log in one answer.
const ANSWER: usize = 60_000;
/// Bytes of a log: at least, whatever else there is, and at most.
const LOG: (usize, usize) = (20_000, 50_000);
/// Bytes of one entry of a log.
const ENTRY: usize = 12_000;
/// What texts, and lists and maps, are shortened to when all of them together are too long.
const STAGES: [(usize, usize); 6] = [
    (4_000, usize::MAX),
    (1_000, usize::MAX),
    (250, usize::MAX),
    (250, 100),
    (250, 20),
    (100, 5),
];

/// Where all of what a list says in short is.
const STATUS: &str = "`get_workflow_status` says more";
/// Where all of what a task gave is.
const GIVEN: &str = "the run has all of it when its tasks are over";

/// Room for the values of one answer.
pub(super) struct Room(usize);

impl Room {
    pub(super) const fn new() -> Self {
        Room(VALUES)
    }

    /// Bytes of a log that fit beside the values.
    pub(super) fn for_log(&self) -> usize {
        let values = VALUES.saturating_sub(self.0);
        ANSWER.saturating_sub(values).clamp(LOG.0, LOG.1)
    }

    /// A value as it fits. `path` is what `get_workflow_state` finds it under.
    pub(super) fn value(&mut self, value: Value, path: &str) -> Value {
        self.at(value, &Place::Path(path.to_owned()))
    }

    /// What a task gave, as it fits. No path leads there: the run gets it when the tasks are over.
    pub(super) fn value_of_task(&mut self, value: Value) -> Value {
        self.at(value, &Place::Elsewhere(GIVEN))
    }

    fn at(&mut self, value: Value, place: &Place<'_>) -> Value {
        // Something of everything is shown, however long what came before.
        let room = self.0.max(VALUES / 10);
        let fitting = fit(value, place, VALUE, room);
        self.0 = self.0.saturating_sub(size(&fitting));
        fitting
    }

    /// The same of a map.
    pub(super) fn map(&mut self, map: Map<String, Value>, path: &str) -> Map<String, Value> {
        match self.value(Value::Object(map), path) {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

/// A part of a log entry.
pub(super) fn logged(value: Value, path: &str) -> Value {
    fit(value, &Place::Path(path.to_owned()), LOGGED, ENTRY)
}

/// A text of a log entry.
pub(super) fn logged_text(text: String, path: &str) -> String {
    let place = Place::Path(path.to_owned());
    shortened(&text, &place, LOGGED).unwrap_or(text)
}

/// Why a run failed, which may quote what a program wrote.
pub(super) fn reason(message: String) -> String {
    shortened(&message, &Place::Path("error".to_owned()), LOGGED).unwrap_or(message)
}

/// The same in a list of runs.
pub(super) fn brief_reason(message: String) -> String {
    shortened(&message, &Place::Elsewhere(STATUS), BRIEF).unwrap_or(message)
}

/// Something that stands whole elsewhere: the values of a map, each by its name.
pub(super) fn brief(map: Map<String, Value>, whole: &str) -> Map<String, Value> {
    let place = Place::Elsewhere(whole);
    let entries = map.into_iter();
    entries
        .map(|(name, value)| (name, cut(&value, &place, BRIEF, usize::MAX)))
        .collect()
}

/// Where all of something is read.
enum Place<'a> {
    /// At a path of `get_workflow_state`.
    Path(String),
    /// Where this says.
    Elsewhere(&'a str),
}

impl Place<'_> {
    /// The place of an entry. A name with a dot in it cannot be told in a path.
    fn below(&self, name: &str) -> Self {
        match self {
            Place::Path(path) if name.contains('.') || name.is_empty() => Place::Path(path.clone()),
            Place::Path(path) if path.is_empty() => Place::Path(name.to_owned()),
            Place::Path(path) => Place::Path(format!("{path}.{name}")),
            Place::Elsewhere(whole) => Place::Elsewhere(whole),
        }
    }

    fn sentence(&self) -> String {
        match self {
            Place::Path(path) if path.is_empty() => {
                "`get_workflow_state` with the paths that matter gives all".to_owned()
            }
            Place::Path(path) => format!("`get_workflow_state` with paths [\"{path}\"] gives all"),
            Place::Elsewhere(whole) => (*whole).to_owned(),
        }
    }
}

fn fit(value: Value, place: &Place<'_>, longest: usize, room: usize) -> Value {
    if size(&value) <= longest.min(room) {
        return value;
    }
    let stages = STAGES.into_iter().filter(|(to, _)| *to < longest);
    for (longest, most) in [(longest, usize::MAX)].into_iter().chain(stages) {
        let short = cut(&value, place, longest, most);
        if size(&short) <= room {
            return short;
        }
    }
    let said = format!("… {} bytes left out: {}", size(&value), place.sentence());
    match value {
        Value::Object(_) => Value::Object(Map::from_iter([("…".to_owned(), said.into())])),
        _ => said.into(),
    }
}

/// A value with texts of so many characters, and lists and maps of so many entries, at most.
fn cut(value: &Value, place: &Place<'_>, longest: usize, most: usize) -> Value {
    match value {
        Value::String(text) => match shortened(text, place, longest) {
            Some(short) => short.into(),
            None => value.clone(),
        },
        Value::Array(items) => {
            let kept = items.iter().take(most).enumerate();
            let kept =
                kept.map(|(index, it)| cut(it, &place.below(&index.to_string()), longest, most));
            let rest = left_out(items.len(), most, "entries", place).map(Value::from);
            kept.chain(rest).collect()
        }
        Value::Object(map) => {
            let kept = map.iter().take(most);
            let kept =
                kept.map(|(name, it)| (name.clone(), cut(it, &place.below(name), longest, most)));
            let rest = left_out(map.len(), most, "entries", place);
            let rest = rest.map(|said| ("…".to_owned(), Value::from(said)));
            Value::Object(kept.chain(rest).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// That some of so many are not shown, and where they are.
fn left_out(count: usize, shown: usize, what: &str, place: &Place<'_>) -> Option<String> {
    let left = count.checked_sub(shown).filter(|left| *left > 0)?;
    Some(format!(
        "… {left} of {count} {what} left out: {} …",
        place.sentence()
    ))
}

/// A text by its ends, if it is longer than that.
fn shortened(text: &str, place: &Place<'_>, longest: usize) -> Option<String> {
    if text.len() <= longest {
        return None;
    }
    let count = text.chars().count();
    let (head, tail) = (longest * 3 / 4, longest / 4);
    let left = left_out(count, head + tail, "characters", place)?;
    let at = |number: usize| {
        let found = text.char_indices().nth(number);
        found.map_or(text.len(), |(at, _)| at)
    };
    let (first, last) = (&text[..at(head)], &text[at(count - tail)..]);
    Some(format!("{first}\n{left}\n{last}"))
}

/// About how many bytes a value is as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|it| size(it) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            let entries = map.iter().map(|(name, it)| name.len() + 4 + size(it));
            entries.sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Room, VALUES, brief, logged, size};

    #[test]
    fn values_of_ordinary_size_are_answered_as_they_are() {
        let value = json!({"a": "x".repeat(16_000), "b": [1, 2, {"c": "d"}]});
        assert_eq!(Room::new().value(value.clone(), ""), value);
    }

    #[test]
    fn a_long_text_is_shown_by_its_ends_with_the_path_to_all_of_it() {
        let long = format!("first{}last", "ü".repeat(100_000));
        let shown = Room::new().value(json!({"a": {"b": [long]}}), "variables");
        let shown = shown["a"]["b"][0].as_str().unwrap_or_default();
        assert!(shown.starts_with("first") && shown.ends_with("last"));
        let said = "… 84009 of 100009 characters left out: `get_workflow_state` with paths \
            [\"variables.a.b.0\"] gives all …";
        assert!(shown.contains(said), "{shown}");
    }

    #[test]
    fn many_values_fit_together() {
        let many: Vec<Value> = (0..9_000)
            .map(|n| json!({"n": n, "text": "x".repeat(90)}))
            .collect();
        let mut room = Room::new();
        let shown = room.value(json!({"many": many}), "");
        assert!(size(&shown) <= VALUES, "{}", size(&shown));
        assert_eq!(shown["many"][0], many[0]);
        let texts: Vec<(String, Value)> = (0..40)
            .map(|n| (format!("v{n}"), json!("y".repeat(2_400))))
            .collect();
        let texts = Value::Object(texts.into_iter().collect());
        let shown = Room::new().value(texts, "variables");
        assert!(size(&shown) <= VALUES && shown["v39"].is_string());
    }

    #[test]
    fn a_log_entry_is_short_and_what_is_told_elsewhere_shorter() {
        let entry = logged(json!({"stdout": "z".repeat(50_000)}), "log.3.result");
        assert!(size(&entry) < 4_200);
        let said = entry["stdout"].as_str().unwrap_or_default();
        assert!(said.contains("[\"log.3.result.stdout\"]"), "{said}");
        let Value::Object(map) = json!({"message": "m".repeat(5_000), "kind": "text"}) else {
            return;
        };
        let short = brief(map, "`pending` has all");
        assert_eq!(short["kind"], "text");
        assert!(size(&short["message"]) < 1_200);
    }
}
