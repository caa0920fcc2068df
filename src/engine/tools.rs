//! Tools of a definition, done by the program with the types of the definition.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use flow_model::tools::ToolError;
use flow_model::value::Whole;
use flow_runtime::host::{Boxed, ToolCall, Tools};
use flow_runtime::journal::RunId;
use flow_runtime::run::{Failure, FailureKind};
use flow_runtime::value::Value;

tokio::task_local! {
    static CURRENT: Call;
}

/// The call that a tool is doing.
///
/// A call that was under way when its process died is repeated, with the same key: what must not be
/// done twice is recognised by it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The run that calls.
    pub run: RunId,
    /// The same whenever this call is repeated, and no other call's.
    pub key: String,
}

impl Call {
    /// The call being done, inside of a tool; `None` elsewhere.
    #[must_use]
    pub fn current() -> Option<Call> {
        CURRENT.try_with(Clone::clone).ok()
    }
}

/// The tools of a definition, done by an implementation of its trait `Tools`. The function `tools`
/// of a module makes it, and `with_tools` gives it to a host.
pub struct Typed<T> {
    with: T,
    names: &'static [&'static str],
    call: Dispatch<T>,
}

type Dispatch<T> = for<'a> fn(&'a T, Asked<'a>) -> Boxed<'a, Result<Told, Failure>>;

impl<T> Typed<T> {
    #[doc(hidden)]
    pub fn new(with: T, names: &'static [&'static str], call: Dispatch<T>) -> Self {
        Typed { with, names, call }
    }
}

impl<T: Send + Sync> Tools for Typed<T> {
    fn has(&self, tool: &str) -> bool {
        self.names.contains(&tool)
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        let current = Call {
            run: call.run,
            key: call.key.to_owned(),
        };
        let asked = Asked {
            tool: call.tool,
            parameters: call.parameters,
        };
        let mut work = (self.call)(&self.with, asked);
        Box::pin(CURRENT.scope(current, async move {
            // A tool that panics fails; nobody would answer for it otherwise.
            let polled = poll_fn(|context| {
                let poll = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
                poll.unwrap_or_else(|panic| Poll::Ready(Err(asked.panicked(panic.as_ref()))))
            });
            polled.await.map(|told| told.0)
        }))
    }
}

/// What a tool is asked.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The tool.
    pub tool: &'a str,
    parameters: &'a Value,
}

/// What a tool has told.
pub struct Told(Value);

impl Asked<'_> {
    /// The parameters, as declared.
    ///
    /// # Errors
    ///
    /// Every fault.
    pub fn params<P: Whole>(&self) -> Result<P, Failure> {
        P::enter(self.parameters.to_json()).map_err(|faults| {
            let message = format!("the tool `{}` is not called: {faults}", self.tool);
            Failure::new(FailureKind::Validation, message)
        })
    }

    /// The result, as declared.
    ///
    /// # Errors
    ///
    /// Why the tool failed, or every fault of its result.
    pub fn told<R: Whole>(&self, result: Result<R, ToolError>) -> Result<Told, Failure> {
        let tool = self.tool;
        match result.map(|result| result.leave()) {
            Ok(Ok(result)) => Ok(Told(Value::from(&result))),
            Ok(Err(faults)) => {
                let message =
                    format!("the result of the tool `{tool}` is not as declared: {faults}");
                Err(Failure::new(FailureKind::Validation, message))
            }
            Err(error) => {
                let message = format!("the tool `{tool}` failed: {error}");
                Err(Failure::new(FailureKind::Action, message))
            }
        }
    }

    /// That the tool is another's.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn unknown(&self) -> Result<Told, Failure> {
        let message = format!("no tool `{}` is available here", self.tool);
        Err(Failure::new(FailureKind::Action, message))
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Failure {
        let said = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("it does not say why");
        let message = format!("the tool `{}` panicked: {said}", self.tool);
        Failure::new(FailureKind::Action, message)
    }
}
