//! A failed run that tries again.

use flow_model::graph::{Outcome, Target};

use super::effect::Status;
use super::event::Allowance;
use super::frame::ROOT;
use super::machine::Machine;
use crate::value::Value;

impl Machine<'_> {
    /// Tries the failed step again: the workflow's own frame still stands where it failed.
    pub(super) fn resume(&mut self, allowance: Allowance) {
        let start = &mut self.data.start;
        start.max_steps = allowance.max_steps.or(start.max_steps);
        start.timeout = allowance.timeout.or(start.timeout);
        self.data.status = Status::Running;
        self.data.error = None;
        // They were closed when it failed.
        self.data.forget_sessions();
        // Whoever tries again gives the run its time again.
        self.data.used = 0;
        self.data.count_failure_steps();
        self.data.return_values = None;
        if self.data.steps == 0 {
            // Its arguments were not set, or its initial state could not be made.
            match self.data.environment == Value::Null {
                true => self.open(),
                false => self.restart(),
            }
            return;
        }
        let on_resume = self.graph.on_resume;
        if on_resume.reset_error_counts {
            self.reset_tracks();
        }
        let entry = self.graph.body.entry;
        let Some(frame) = self.data.frames.get_mut(&ROOT) else {
            return;
        };
        if !on_resume.skip_completed_steps {
            frame.at = entry;
            frame.loops.clear();
            frame.containers.clear();
            frame.jumps.clear();
            self.discard_kept(ROOT);
            self.data.ready.push_back(ROOT);
            return;
        }
        let at = frame.at;
        if let (false, Target::Node(index)) = (on_resume.retry_failed_steps, at)
            && let Some(node) = self.node(ROOT, index)
            && let Some(to) = node.next(Outcome::Success)
        {
            // The failed step is left as it is.
            self.visit_loops(ROOT);
            self.reopen_containers(ROOT);
            self.go(ROOT, to);
            self.data.ready.push_back(ROOT);
            return;
        }
        self.go_on_from_here(ROOT);
    }
}
