//! Why a tool did not do what was asked.

use std::fmt;

/// The failure of a tool that an embedder implements. Any error becomes one with `?`.
///
/// ```
/// use flow_model::tools::ToolError;
///
/// fn parse(text: &str) -> Result<i64, ToolError> {
///     Ok(text.parse::<i64>()?)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub struct ToolError(Box<dyn std::error::Error + Send + Sync>);

impl ToolError {
    /// A failure that a sentence explains.
    pub fn new(message: impl Into<String>) -> Self {
        ToolError(message.into().into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        ToolError(Box::new(error))
    }
}
