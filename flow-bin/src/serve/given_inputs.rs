//! Inputs that a person gives to a prompt as one text: a JSON object, or `key=value` words.

use flow_model::graph::Graph;
use flow_runtime::input;
use flow_runtime::value::Value as Given;
use serde_json::Value;

/// Whether what is given fits the inputs of a workflow. What is missing is not a fault: the agent
/// asks for it.
///
/// # Errors
///
/// Every fault, and what there is to give.
pub(super) fn check(graph: &Graph, text: &str) -> Result<(), String> {
    let given = read(graph, text)?;
    let Some(fields) = &graph.inputs else {
        return Ok(());
    };
    let borrowed: Vec<(&str, Given)> = given
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    let Err(faults) = flow_runtime::input::complete(fields, &borrowed) else {
        return Ok(());
    };
    let is_given = |name: &str| given.iter().any(|(given, _)| given == name);
    let is_missing = |name: &str| {
        let mut fields = fields.iter();
        fields.any(|field| field.name == name) && !is_given(name)
    };
    let faults = faults.into_iter().filter(|fault| !is_missing(&fault.input));
    let faults: Vec<String> = faults.map(|fault| fault.to_string()).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = fields.iter().map(|it| format!("`{}`", it.name)).collect();
    let takes = match names.is_empty() {
        true => "it takes none".to_owned(),
        false => format!("it takes {}", names.join(", ")),
    };
    Err(format!("{}; {takes}", faults.join("; ")))
}

fn read(graph: &Graph, text: &str) -> Result<Vec<(String, Given)>, String> {
    let text = text.trim();
    if text.starts_with('{') {
        let object: Result<serde_json::Map<String, Value>, _> = serde_json::from_str(text);
        let object = object.map_err(|error| format!("this is not a JSON object: {error}"))?;
        let entries = object.iter();
        return Ok(entries
            .map(|(name, value)| (name.clone(), Given::from(value)))
            .collect());
    }
    let fields = graph.inputs.iter().flat_map(|fields| fields.iter());
    let declared = |name: &str| fields.clone().find(|field| field.name == name);
    let words = words(text)?.into_iter().map(|(name, written)| {
        let read = input::read(declared(&name), &written);
        let read = read.map_err(|reason| format!("`{name}` {reason}"))?;
        Ok((name, read))
    });
    words.collect()
}

/// Cuts `key=value` words apart. A value ends where the next key begins, so that it may contain
/// spaces; quotes around it are not part of it.
fn words(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some((name, after)) = key(rest) else {
            let word = rest.split_whitespace().next().unwrap_or_default();
            return Err(format!(
                "`{word}` is not of the form key=value; give a JSON object, or key=value words"
            ));
        };
        let end = value_end(after);
        let written = after[..end].trim();
        let quoted = ['"', '\''].iter().find_map(|quote| {
            let inner = written.strip_prefix(*quote)?.strip_suffix(*quote)?;
            (!inner.contains(*quote)).then_some(inner)
        });
        found.push((name.to_owned(), quoted.unwrap_or(written).to_owned()));
        rest = after[end..].trim_start();
    }
    Ok(found)
}

/// The key that a text begins with, and what comes after its `=`.
fn key(text: &str) -> Option<(&str, &str)> {
    // As the words of a command line are written.
    let text = text.strip_prefix("--input").map_or(text, str::trim_start);
    let (name, after) = text.split_once('=')?;
    let is_name = name
        .chars()
        .all(|it| it.is_alphanumeric() || "_-".contains(it));
    (is_name && !name.is_empty()).then_some((name, after))
}

/// Where the value ends that a text begins with.
fn value_end(text: &str) -> usize {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' => quote = Some(letter),
            None if letter == '\'' && text[..at].trim().is_empty() => quote = Some(letter),
            None if letter.is_whitespace() && key(text[at..].trim_start()).is_some() => return at,
            None => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::words;

    fn cut(text: &str) -> Vec<(String, String)> {
        words(text).unwrap_or_default()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_value_goes_on_to_the_next_key() {
        assert_eq!(
            cut("who=Ann Lee  n=3 list=[\"a b\", \"c=d\"]"),
            [
                pair("who", "Ann Lee"),
                pair("n", "3"),
                pair("list", "[\"a b\", \"c=d\"]")
            ]
        );
        assert_eq!(
            cut("--input who=it's --input n="),
            [pair("who", "it's"), pair("n", "")]
        );
        assert_eq!(
            cut("who=\"a n=1\" n='2 x'"),
            [pair("who", "a n=1"), pair("n", "2 x")]
        );
        assert_eq!(cut("q=a=b"), [pair("q", "a=b")]);
        assert_eq!(cut(""), []);
    }

    #[test]
    fn a_word_without_a_key_is_named() {
        let told = words("Ann who=Bob").expect_err("it has no key");
        assert!(
            told.starts_with("`Ann` is not of the form key=value"),
            "{told}"
        );
    }
}
