//! Where other files come from. The language does no I/O; whoever compiles a definition says how
//! imports and called workflows are found.

use crate::source::Source;

/// Finds imports and called workflows.
pub trait Loader {
    /// The file that `from` imports as `path`, which is relative to `from`.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in a few words.
    fn import(&self, from: &str, path: &str) -> Result<Source, String>;

    /// The definition of a workflow that is called by name.
    fn workflow(&self, name: &str) -> Lookup;
}

/// What is known of a called workflow.
#[derive(Debug)]
pub enum Lookup {
    /// This is it.
    Found(Box<Source>),
    /// There is none of this name, and perhaps one of these was meant.
    NotFound(Vec<String>),
    /// Nobody here can tell.
    Unknown,
}

/// Finds nothing: for a definition that stands alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLoader;

impl Loader for NoLoader {
    fn import(&self, _from: &str, _path: &str) -> Result<Source, String> {
        Err("imports cannot be read here".to_owned())
    }

    fn workflow(&self, _name: &str) -> Lookup {
        Lookup::Unknown
    }
}
