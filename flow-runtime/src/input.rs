//! Inputs of a run against their declarations, by the rules that compiled workflows use too.

use std::fmt;

use flow_model::graph::{Field, Type, Validation};
use flow_model::value::{self, Values, accept};

use crate::value::Value;

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFault {
    /// The input's name, with the path below it.
    pub input: String,
    /// What is wrong, as the end of a sentence.
    pub reason: String,
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a definition says itself is a sentence of its own.
        let space = if self.reason.starts_with(':') {
            ""
        } else {
            " "
        };
        write!(f, "`{}`{space}{}", self.input, self.reason)
    }
}

impl From<value::InputFault> for InputFault {
    fn from(fault: value::InputFault) -> Self {
        let named = format!("`{}`", fault.path);
        let reason = fault.message.strip_prefix(&named).unwrap_or(&fault.message);
        InputFault {
            reason: reason.trim_start().to_owned(),
            input: fault.path,
        }
    }
}

/// Checks inputs and fills in defaults, in the order declared. `null` equals absent, and what is
/// absent is left out.
///
/// # Errors
///
/// Every fault.
pub fn complete(fields: &[Field], given: &[(&str, Value)]) -> Result<Value, Vec<InputFault>> {
    let given = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_json()));
    match accept(fields, given.collect()) {
        Ok(values) => Ok(Value::map(
            values
                .iter()
                .map(|(name, value)| (name, Value::from(value))),
        )),
        Err(invalid) => Err(invalid.0.into_iter().map(InputFault::from).collect()),
    }
}

/// The first fault of the text that answers a prompt.
#[must_use]
pub fn check_text(rules: &Validation, text: &Value) -> Option<InputFault> {
    let field = Field {
        name: "input".into(),
        ty: Type::String,
        required: true,
        default: None,
        description: None,
        secret: false,
        validation: rules.clone(),
    };
    let given: Values = [("input".to_owned(), text.to_json())].into_iter().collect();
    let mut faults = value::faults(&[field], &given).into_iter();
    faults.next().map(InputFault::from)
}
