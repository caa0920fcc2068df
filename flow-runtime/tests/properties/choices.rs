//! Decisions read from a list of numbers, so that a shorter list is a simpler case.

/// A list of decisions. When it is used up every decision is the first option, which is the plain
/// one wherever decisions are made.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    numbers: std::vec::IntoIter<u16>,
}

impl Choices {
    pub(crate) fn new(numbers: Vec<u16>) -> Self {
        Choices {
            numbers: numbers.into_iter(),
        }
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.numbers.next().unwrap_or(0)) % bound.max(1)
    }

    /// Whether something holds once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.numbers.len() == 0
    }
}
