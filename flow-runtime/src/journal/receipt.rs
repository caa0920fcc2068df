//! The answer to a write that is under way.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Error;

/// The answer to a write that is under way: await it, or [`wait`](Receipt::wait) for it. It comes
/// when the write is on the disk. Dropping the receipt does not take the write back.
#[derive(Debug)]
#[must_use = "a write counts when its receipt says so"]
pub struct Receipt<T> {
    slot: Arc<Slot<T>>,
}

/// The other end of a [`Receipt`].
pub(super) struct Answer<T> {
    slot: Arc<Slot<T>>,
    path: PathBuf,
}

#[derive(Debug)]
struct Slot<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
}

#[derive(Debug)]
enum State<T> {
    Open(Option<Waker>),
    Answered(Result<T, Error>),
    Taken,
}

/// A receipt and its other end, about the journal at `path`.
pub(super) fn receipt<T>(path: PathBuf) -> (Answer<T>, Receipt<T>) {
    let slot = Arc::new(Slot {
        state: Mutex::new(State::Open(None)),
        ready: Condvar::new(),
    });
    let answer = Answer {
        slot: Arc::clone(&slot),
        path,
    };
    (answer, Receipt { slot })
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, result: Result<T, Error>) {
        let mut state = self.lock();
        if let State::Open(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Answered(result);
            drop(state);
            self.ready.notify_one();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Answer<T> {
    pub(super) fn give(self, result: Result<T, Error>) {
        self.slot.fill(result);
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        self.slot.fill(Err(Error::Closed { path }));
    }
}

impl<T> Receipt<T> {
    /// Blocks this thread until the write is on the disk. May be called anywhere, but keeps an
    /// asynchronous executor's thread from other work: await the receipt there.
    ///
    /// # Errors
    ///
    /// What kept the write from being done.
    pub fn wait(self) -> Result<T, Error> {
        let mut state = self.slot.lock();
        loop {
            match std::mem::replace(&mut *state, State::Taken) {
                State::Answered(result) => return result,
                other => *state = other,
            }
            state = self
                .slot
                .ready
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> Future for Receipt<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Answered(result) => Poll::Ready(result),
            State::Open(_) => {
                *state = State::Open(Some(context.waker().clone()));
                Poll::Pending
            }
            State::Taken => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[test]
    fn a_thread_can_wait_for_the_answer() {
        let (answer, receipt) = receipt(PathBuf::new());
        let waiting = std::thread::spawn(|| receipt.wait());
        answer.give(Ok(3));
        assert_eq!(waiting.join().unwrap().unwrap(), 3);
    }

    #[test]
    fn a_task_is_woken_by_the_answer() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let (answer, receipt) = receipt(PathBuf::new());
        let mut receipt = pin!(receipt);
        assert!(receipt.as_mut().poll(&mut context).is_pending());
        answer.give(Ok("done"));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(matches!(
            receipt.as_mut().poll(&mut context),
            Poll::Ready(Ok("done"))
        ));
    }

    #[test]
    fn an_answer_that_never_comes_is_an_error() {
        let (answer, receipt) = receipt::<()>("j".into());
        drop(answer);
        assert!(matches!(receipt.wait(), Err(Error::Closed { .. })));
    }
}
