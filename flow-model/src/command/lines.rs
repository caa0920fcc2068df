//! The lines of a command, and which of them are nothing by themselves.

use super::reader::Reader;
use super::{HereDocument, Reading, Standing};

/// For each line of a command after the first whether it belongs to what stands before it: inside quotes
/// or parentheses, behind a backslash, or in a here-document. Whoever types lines one by one knows by it
/// which of them must not be read on their own.
///
/// ```
/// use flow_model::command::belonging;
///
/// assert_eq!(belonging("cat <<E\nbody\nE\necho 'two\nlines'\ntrue"), [true, true, false, true, false]);
/// ```
#[must_use]
pub fn belonging(command: &str) -> Vec<bool> {
    let mut reading = Lines;
    let mut reader = Reader::new(command, &mut reading);
    let mut belonging = Vec::new();
    loop {
        let inside = reader.is_inside();
        let Ok(Some(read)) = reader.advance() else {
            return belonging;
        };
        let ends = read.matches('\n').count();
        let inside = inside || read.starts_with('\\');
        // A line end is followed by the here-documents of its line, the last of which ends one too.
        let is_last = |end| end + 1 == ends && (end == 0 || read.ends_with('\n'));
        belonging.extend((0..ends).map(|end| inside || !is_last(end)));
    }
}

/// Reads lines alone.
struct Lines;

impl Reading for Lines {
    type Error = std::convert::Infallible;

    fn marked(&self, _text: &str) -> Option<(usize, usize)> {
        None
    }

    fn text(&mut self, _text: &str) {}

    fn value(&mut self, _standing: &Standing<'_>) -> Result<bool, Self::Error> {
        Ok(true)
    }

    fn document(&mut self, _document: &HereDocument) {}

    fn document_ends(
        &mut self,
        _document: &HereDocument,
        _valued: bool,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
}
