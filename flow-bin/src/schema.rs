//! `flow schema`: the JSON Schema of definitions.

use anyhow::Result;

use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(output: &mut Output) -> Result<Exit> {
    output.line(format_args!("{:#}", flow_model::schema::workflow()))?;
    Ok(Exit::Done)
}
