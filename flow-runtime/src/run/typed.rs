//! The types that a document declares for fields of its state.

use std::collections::HashMap;

use flow_model::graph::{Graph, Tier, Type};

use crate::value::Value;

/// Types by tier and field; fields of any type are left out.
#[derive(Clone, Debug, Default)]
pub struct Types {
    raw: HashMap<String, Type>,
    state: HashMap<String, Type>,
}

impl Types {
    /// Those of a workflow.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        let mut types = Types::default();
        let typed = graph.state.iter().filter(|field| field.ty != Type::Any);
        for field in typed {
            let tier = match field.tier {
                Tier::Raw | Tier::Computed => &mut types.raw,
                Tier::State => &mut types.state,
            };
            tier.insert(field.name.to_string(), field.ty);
        }
        types
    }

    /// Whether a field may have a value, or why not. `null` says that there is none.
    ///
    /// # Errors
    ///
    /// The field, what it must be and what it would be.
    pub fn check(&self, tier: Tier, field: &str, value: Option<&Value>) -> Result<(), String> {
        let types = match tier {
            Tier::Raw | Tier::Computed => &self.raw,
            Tier::State => &self.state,
        };
        let (Some(ty), Some(value)) = (types.get(field), value) else {
            return Ok(());
        };
        let fits = match (ty, value) {
            (Type::Any, _)
            | (_, Value::Null)
            | (Type::String, Value::Str(_))
            | (Type::Number, Value::Int(_) | Value::Float(_))
            | (Type::Integer, Value::Int(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::Array, Value::List(_))
            | (Type::Object, Value::Map(_)) => true,
            (
                Type::String
                | Type::Number
                | Type::Integer
                | Type::Boolean
                | Type::Array
                | Type::Object,
                _,
            ) => false,
        };
        match fits {
            true => Ok(()),
            false => Err(format!(
                "`{field}` is declared as `{}` and cannot be {}",
                ty.word(),
                value.noun()
            )),
        }
    }
}
