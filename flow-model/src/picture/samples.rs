//! Graphs to draw, built by hand.
#![allow(
    clippy::unwrap_used,
    reason = "a sample that cannot be built is a failed test"
)]

use std::borrow::Cow;

use crate::graph::*;

/// A sole expression.
pub(super) fn expression(source: &str) -> Expression {
    Expression {
        source: Cow::Owned(source.to_owned()),
        dialect: Dialect::Jinja,
    }
}

pub(super) fn text(text: &str) -> Template {
    Template::Literal(Literal::Str(Cow::Owned(text.to_owned())))
}

pub(super) fn shell(command: &str) -> Kind {
    Kind::Shell(Shell {
        command: text(command),
        env: Cow::Borrowed(&[]),
        working_directory: None,
        output: OutputFormat::Result,
        by: By::Host,
        reason: None,
        exit_fails: false,
    })
}

pub(super) fn tool(name: &str, parameters: &[(&str, &str)]) -> Kind {
    let parameters = parameters
        .iter()
        .map(|(key, value)| (Cow::Owned((*key).to_owned()), text(value)))
        .collect();
    Kind::Tool {
        tool: ToolRef::Builtin(Cow::Owned(name.to_owned())),
        parameters: Template::Map(parameters),
    }
}

pub(super) fn prompt(message: &str) -> Kind {
    Kind::Prompt(Prompt {
        message: text(message),
        kind: PromptKind::Confirm,
        options: None,
        validation: Validation::NONE,
    })
}

pub(super) fn condition(test: &str) -> Kind {
    Kind::Condition {
        test: expression(test),
    }
}

pub(super) fn repeat(test: &str, times: u32) -> Kind {
    Kind::While {
        test: expression(test),
        bound: Bound {
            times,
            explicit: true,
        },
    }
}

pub(super) fn each(items: &str) -> Kind {
    Kind::Loop {
        items: Template::Expression(expression(items)),
    }
}

pub(super) fn fan_out(items: &str, task: u16) -> Kind {
    Kind::FanOut(FanOut {
        items: Template::Expression(expression(items)),
        task,
        runner: Runner::Host,
        sequential: false,
        max_parallel: Some(4),
        on_child_error: OnChildError::Continue,
        collect_to: None,
        prompt: None,
    })
}

pub(super) fn delegate(agent: &str, instructions: &str) -> Kind {
    Kind::Delegate {
        instructions: text(instructions),
        agent: Some(Cow::Owned(agent.to_owned())),
        returns: None,
    }
}

pub(super) fn wait(seconds: i64) -> Kind {
    Kind::Wait {
        seconds: Template::Literal(Literal::Int(seconds)),
        message: None,
    }
}

pub(super) fn finish(value: &str) -> Kind {
    Kind::Return {
        value: Some(text(value)),
    }
}

pub(super) fn call(name: &str) -> Kind {
    Kind::Call(Call {
        target: CallTarget::Name(text(name)),
        inputs: Template::Literal(Literal::Null),
        variables: Template::Literal(Literal::Null),
        session: None,
        max_states: None,
        execution_timeout: None,
        save_on_success: None,
        shares_computed: false,
        answer: CallAnswer::Outputs,
    })
}

/// A body under construction. Arrows name nodes by id; `end` is the end.
#[derive(Default)]
pub(super) struct Draft {
    nodes: Vec<Node>,
    arrows: Vec<(usize, Guard, String)>,
}

impl Draft {
    pub(super) fn node(mut self, id: &str, kind: Kind) -> Self {
        let line = u32::try_from(self.nodes.len()).unwrap() + 1;
        self.nodes.push(Node {
            id: Cow::Owned(id.to_owned()),
            description: None,
            line,
            parent: None,
            kind,
            needs_state: None,
            when: None,
            timeout: None,
            retry: None,
            fallback_value: None,
            writes: Cow::Borrowed(&[]),
            error_writes: Cow::Borrowed(&[]),
            edges: Cow::Borrowed(&[]),
        });
        self
    }

    /// Changes the node added last.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Node)) -> Self {
        change(self.nodes.last_mut().unwrap());
        self
    }

    /// Puts the node added last into a container.
    pub(super) fn within(mut self, id: &str) -> Self {
        let parent = self.nodes.iter().position(|node| node.id == id).unwrap();
        self.nodes.last_mut().unwrap().parent = Some(u16::try_from(parent).unwrap());
        self
    }

    pub(super) fn when(self, test: &str) -> Self {
        let when = expression(test);
        self.with(|node| node.when = Some(when))
    }

    pub(super) fn set(self, field: &str, value: &str) -> Self {
        let write = Write {
            path: StatePath {
                tier: Tier::Raw,
                segments: vec![text(field)].into(),
            },
            operation: Operation::Set,
            value: Some(text(value)),
            beside: false,
        };
        self.with(|node| node.writes = vec![write].into())
    }

    /// An arrow from the node added last.
    pub(super) fn to(mut self, guard: Guard, id: &str) -> Self {
        self.arrows
            .push((self.nodes.len() - 1, guard, id.to_owned()));
        self
    }

    pub(super) fn then(self, id: &str) -> Self {
        self.to(Guard::Success, id)
    }

    pub(super) fn body(mut self) -> Body {
        for (from, guard, id) in std::mem::take(&mut self.arrows) {
            let to = match id.as_str() {
                "end" => Target::Complete,
                id => {
                    let index = self.nodes.iter().position(|node| node.id == id);
                    Target::Node(u16::try_from(index.unwrap()).unwrap())
                }
            };
            self.nodes[from].edges.to_mut().push(Edge { guard, to });
        }
        Body {
            entry: if self.nodes.is_empty() {
                Target::Complete
            } else {
                Target::Node(0)
            },
            nodes: self.nodes.into(),
        }
    }
}

pub(super) fn graph(name: &str, description: &str, body: Body) -> Graph {
    Graph {
        name: Cow::Owned(name.to_owned()),
        description: Some(Cow::Owned(description.to_owned())),
        version: Some(Cow::Borrowed("1.2.0")),
        form: Form::Steps,
        dialect: Dialect::Jinja,
        inputs: None,
        outputs: Cow::Borrowed(&[]),
        arguments: Cow::Borrowed(&[]),
        return_values: Cow::Borrowed(&[]),
        state: Cow::Borrowed(&[]),
        computed: Cow::Borrowed(&[]),
        tools: Cow::Borrowed(&[]),
        agents: Cow::Borrowed(&[]),
        tasks: Cow::Borrowed(&[]),
        body,
        on_error: OnError {
            action: ErrorAction::Fail,
            collect_to: None,
            body: Body::EMPTY,
        },
        on_resume: OnResume {
            retry_failed_steps: true,
            skip_completed_steps: true,
            reset_error_counts: false,
        },
        limits: Limits {
            max_steps: 10_000,
            timeout: None,
            max_depth: 5,
            max_parallel: 10,
            max_state_bytes: 1_000_000,
        },
    }
}

pub(super) fn task(name: &str, description: &str, body: Body) -> Task {
    Task {
        name: Cow::Owned(name.to_owned()),
        description: Some(Cow::Owned(description.to_owned())),
        inputs: None,
        state: Cow::Borrowed(&[]),
        shares_state: false,
        dialect: Dialect::Jinja,
        body,
        on_error: None,
    }
}

pub(super) fn matches(pattern: &str) -> Guard {
    Guard::When(Condition::PatternMatch(Template::Literal(Literal::Str(
        Cow::Owned(pattern.to_owned()),
    ))))
}

pub(super) fn empty() -> Graph {
    graph("nothing", "Does nothing, and is done.", Body::EMPTY)
}

pub(super) fn single() -> Graph {
    let body = Draft::default()
        .node("hello", shell("echo hello"))
        .then("end");
    graph("hello", "Says hello.", body.body())
}

pub(super) fn linear() -> Graph {
    let body = Draft::default()
        .node("fetch", shell("git fetch --all --prune"))
        .then("build")
        .node("build", shell("cargo build --release --locked --workspace"))
        .with(|node| {
            node.retry = Some(Retry {
                attempts: 3,
                delay: 1.0,
                backoff: 2.0,
                max_delay: None,
            });
        })
        .then("test")
        .node("test", shell("cargo test --workspace"))
        .then("confirm")
        .node(
            "confirm",
            prompt("Everything is green. Publish {{ inputs.version }} now?"),
        )
        .when("inputs.interactive")
        .then("publish")
        .to(Guard::Skip, "publish")
        .node(
            "publish",
            tool("registry.publish", &[("version", "{{ inputs.version }}")]),
        )
        .then("end");
    graph(
        "release",
        "Builds, tests and publishes one version.",
        body.body(),
    )
}

/// The interactive debugger: thirteen states, three ways back.
pub(super) fn debugger() -> Graph {
    let success = || Guard::When(Condition::Success(true));
    let send = |input: &str| {
        tool(
            "send_input",
            &[("session_id", "{session_id}"), ("input_text", input)],
        )
    };
    let awaits = |pattern: &str, timeout: &str| {
        let parameters = [
            ("session_id", "{session_id}"),
            ("pattern", pattern),
            ("timeout", timeout),
        ];
        tool("await_output", &parameters)
    };
    let body = Draft::default()
        .node("start_session", tool("open_terminal", &[("shell", "bash")]))
        .to(success(), "start_debugger")
        .node("start_debugger", send("python -m pdb script.py\n"))
        .to(success(), "wait_for_pdb")
        .node("wait_for_pdb", awaits(r"\(Pdb\)", "10.0"))
        .to(matches(r"\(Pdb\)"), "prompt_user")
        .node("prompt_user", send("read -p 'Debug command (l=list, s=step, c=continue, q=quit): ' cmd && echo \"USER_CMD:$cmd\"\n"))
        .to(success(), "capture_choice")
        .node("capture_choice", awaits("USER_CMD:([lscq])", "60.0"))
        .to(matches("USER_CMD:l"), "list_code")
        .to(matches("USER_CMD:s"), "step_code")
        .to(matches("USER_CMD:c"), "continue_exec")
        .to(matches("USER_CMD:q"), "quit_debug")
        .node("list_code", send("l\n"))
        .to(success(), "wait_after_list")
        .node("wait_after_list", awaits(r"\(Pdb\)", "5.0"))
        .to(matches(r"\(Pdb\)"), "prompt_user")
        .node("step_code", send("s\n"))
        .to(success(), "wait_after_step")
        .node("wait_after_step", awaits(r"\(Pdb\)", "5.0"))
        .to(matches(r"\(Pdb\)"), "prompt_user")
        .node("continue_exec", send("c\n"))
        .to(success(), "wait_for_completion")
        .node("wait_for_completion", awaits(r">>>|\$|completed", "30.0"))
        .to(success(), "cleanup")
        .node("quit_debug", send("q\n"))
        .to(success(), "cleanup")
        .node("cleanup", tool("exit_terminal", &[("session_id", "{session_id}")]))
        .to(Guard::Always, "end");
    let mut graph = graph(
        "interactive_debug",
        "Interactive debugging session with user input",
        body.body(),
    );
    graph.form = Form::States;
    graph
}

/// A condition, a while loop and a loop over items, one in the other.
pub(super) fn nested() -> Graph {
    let body = Draft::default()
        .node("load", shell("cat queue.json"))
        .then("has_work")
        .node("has_work", condition("state.queue | length > 0"))
        .to(Guard::Then, "drain")
        .to(Guard::Else, "idle")
        .node("drain", repeat("state.queue and not state.stop", 50))
        .within("has_work")
        .to(Guard::Body, "take")
        .to(Guard::Done, "report")
        .node("take", Kind::SetState)
        .within("drain")
        .set("batch", "{{ state.queue[:10] }}")
        .then("per_file")
        .node("per_file", each("state.batch"))
        .within("drain")
        .to(Guard::Body, "lint")
        .to(Guard::Done, "tally")
        .node("lint", shell("ruff check {{ item }}"))
        .within("per_file")
        .then("clean")
        .to(Guard::Failure, "give_up")
        .node("clean", condition("state.lint.exit_code == 0"))
        .within("per_file")
        .to(Guard::Then, "mark")
        .to(Guard::Else, "fatal")
        .node("mark", Kind::SetState)
        .within("clean")
        .set("done", "{{ state.done + 1 }}")
        .then("per_file")
        .node("fatal", condition("'E999' in state.lint.stdout"))
        .within("clean")
        .to(Guard::Then, "stop")
        .to(Guard::Else, "next")
        .node("stop", Kind::Jump(Jump::Break))
        .within("fatal")
        .to(Guard::Always, "tally")
        .node("next", Kind::Jump(Jump::Continue))
        .within("fatal")
        .to(Guard::Always, "per_file")
        .node("tally", shell("echo {{ state.done }}"))
        .within("drain")
        .then("drain")
        .node("idle", wait(30))
        .within("has_work")
        .then("report")
        .node("report", prompt("Done: {{ state.done }} files"))
        .then("end")
        .node("give_up", finish("lint crashed"));
    graph(
        "lint_queue",
        "Takes files from a queue in batches and lints each of them until the queue is empty or one file cannot be parsed.",
        body.body(),
    )
}

/// Two fan-outs, failure steps, and a task with failure steps of its own.
pub(super) fn fans() -> Graph {
    let body = Draft::default()
        .node("find", shell("git ls-files '*.py'"))
        .then("split")
        .node("split", condition("state.files | length > 100"))
        .to(Guard::Then, "sample")
        .to(Guard::Else, "review")
        .node("sample", Kind::SetState)
        .within("split")
        .set("files", "{{ state.files[:100] }}")
        .then("review")
        .node("review", fan_out("state.files", 0))
        .then("summarise")
        .to(Guard::Failure, "ask")
        .node("ask", prompt("Some reviews failed. Go on?"))
        .then("summarise")
        .node(
            "summarise",
            delegate("writer", "Summarise all reviews on one page"),
        )
        .then("notify")
        .node("notify", fan_out("state.reviewers", 1))
        .then("end");
    let review = Draft::default()
        .node("read", shell("cat {{ item }}"))
        .then("judge")
        .node(
            "judge",
            delegate("reviewer", "Review this file for security and clarity"),
        )
        .then("severe")
        .node("severe", condition("result.severity > 7"))
        .to(Guard::Then, "ticket")
        .to(Guard::Else, "done")
        .node("ticket", tool("tracker.create", &[("title", "{{ item }}")]))
        .within("severe")
        .then("done")
        .node("done", finish("{{ state.judge }}"));
    let notify = Draft::default()
        .node("mail", tool("mail.send", &[("to", "{{ item.address }}")]))
        .then("end");
    let mut reviewing = task(
        "review_file",
        "Reads one file and reviews it.",
        review.body(),
    );
    reviewing.on_error = Some(TaskError {
        returns: true,
        body: Draft::default()
            .node("note", shell("echo {{ error.message }} >> failed.log"))
            .then("end")
            .body(),
    });
    let mut graph = graph(
        "review_all",
        "Reviews every file with its own agent and tells the reviewers.",
        body.body(),
    );
    graph.tasks = vec![
        reviewing,
        task("notify_one", "Sends one mail.", notify.body()),
    ]
    .into();
    graph.on_error.action = ErrorAction::CheckpointAndFail;
    graph.on_error.body = Draft::default()
        .node("save_log", shell("cp run.log /var/log/review/"))
        .then("tell")
        .node("tell", call("notify:operators"))
        .then("end")
        .body();
    graph
}

/// A deployment of sixty states, with retries, a roll-back and time-outs.
pub(super) fn large() -> Graph {
    let mut draft = Draft::default();
    let regions = ["eu", "us", "ap", "sa", "af"];
    draft = draft
        .node("prepare", shell("make clean all"))
        .then("check_0")
        .to(Guard::Failure, "abort");
    for (index, region) in regions.iter().enumerate() {
        let id = |name: &str| format!("{name}_{index}");
        let next = if index + 1 < regions.len() {
            format!("check_{}", index + 1)
        } else {
            "verify".to_owned()
        };
        draft = draft
            .node(
                &id("check"),
                condition(&format!("'{region}' in inputs.regions")),
            )
            .to(Guard::Then, &id("lock"))
            .to(Guard::Else, &next)
            .node(&id("lock"), tool("lock.take", &[("name", region)]))
            .then(&id("upload"))
            .to(Guard::Timeout, &id("wait"))
            .to(Guard::Failure, "abort")
            .node(&id("wait"), wait(60))
            .then(&id("lock"))
            .node(
                &id("upload"),
                shell(&format!(
                    "rsync -a dist/ {region}.example.org:/srv/app/next/"
                )),
            )
            .then(&id("migrate"))
            .to(Guard::Failure, &id("undo"))
            .node(
                &id("migrate"),
                shell("./manage migrate --plan && ./manage migrate"),
            )
            .then(&id("switch"))
            .to(Guard::Failure, &id("undo"))
            .node(&id("switch"), shell("ln -sfn next current"))
            .then(&id("probe"))
            .node(
                &id("probe"),
                tool(
                    "http.get",
                    &[("url", &format!("https://{region}.example.org/health"))],
                ),
            )
            .to(
                Guard::When(Condition::FieldEquals(Cow::Borrowed("status"), text("200"))),
                &id("unlock"),
            )
            .to(
                Guard::Judged(Cow::Borrowed("the service only needs more time")),
                &id("probe"),
            )
            .to(Guard::Always, &id("undo"))
            .node(&id("undo"), shell("ln -sfn previous current"))
            .then(&id("unlock"))
            .node(&id("unlock"), tool("lock.release", &[("name", region)]))
            .then(&next);
    }
    draft = draft
        .node(
            "verify",
            delegate("tester", "Try the main journeys in every region"),
        )
        .then("verdict");
    draft = draft
        .node("verdict", condition("result.passed"))
        .to(Guard::Then, "announce")
        .to(Guard::Else, "abort")
        .node("announce", prompt("Version {{ inputs.version }} is live."))
        .then("end")
        .node(
            "abort",
            prompt("The roll-out stopped. Somebody has to look."),
        )
        .then("clean_up")
        .node("clean_up", shell("make undeploy"))
        .then("end");
    let mut filler = Vec::new();
    for index in 0..13 {
        filler.push(format!("audit_{index}"));
    }
    for (index, id) in filler.iter().enumerate() {
        let next = filler.get(index + 1).map_or("end", String::as_str);
        draft = draft
            .node(id, shell(&format!("audit --stage {index}")))
            .then(next);
    }
    let mut graph = graph(
        "roll_out",
        "Brings a version to every region, one after the other, and takes it back where it does not answer.",
        draft.body(),
    );
    graph.form = Form::States;
    // The roll-out ends with the audit.
    let audit = graph.body.find("audit_0").unwrap();
    let announce = usize::from(graph.body.find("announce").unwrap());
    graph.body.nodes.to_mut()[announce].edges.to_mut()[0].to = Target::Node(audit);
    graph
}

/// A task that runs itself and another one, from inside a loop.
pub(super) fn recursive() -> Graph {
    let walk = Draft::default()
        .node("list", shell("ls {{ item }}"))
        .then("down")
        .node("down", fan_out("state.folders", 0))
        .then("files")
        .node("files", fan_out("state.files", 1))
        .then("end");
    let hash = Draft::default()
        .node("hash", shell("sha256sum {{ item }}"))
        .then("end");
    let body = Draft::default()
        .node("again", repeat("state.changed", 5))
        .to(Guard::Body, "walk")
        .to(Guard::Done, "end")
        .node("walk", fan_out("inputs.roots", 0))
        .within("again")
        .then("empty")
        .to(Guard::Failure, "end")
        .node("empty", each("state.nothing"))
        .within("again")
        .to(Guard::Done, "again");
    let mut graph = graph("tree", "Hashes a tree until it rests.", body.body());
    graph.tasks = vec![
        task("walk_folder", "Goes down one folder.", walk.body()),
        task("hash_file", "Hashes one file.", hash.body()),
    ]
    .into();
    graph
}

/// Names and texts that try to break out of where they stand.
pub(super) fn hostile() -> Graph {
    let long = "very_long_".repeat(60);
    let body = Draft::default()
        .node(
            "<script>alert(\"1\")</script>",
            shell("echo '<&>\"' && `id` ; %%{init}%% -->\n\nrm\t\0\u{7}"),
        )
        .to(
            Guard::Judged(Cow::Borrowed("]]> \"quoted\" | <b> & 'x'\n\u{202E}evil")),
            &long,
        )
        .to(Guard::Failure, "👩‍👩‍👧 emoji 🚀")
        .node(&long, prompt(&"wide 漢字 ".repeat(40)))
        .then("שלום עולם")
        .node("👩‍👩‍👧 emoji 🚀", finish("🎉"))
        .node("שלום עולם", condition("مرحبا < 3 && \"x\" > '&amp;'"))
        .to(Guard::Then, "")
        .to(Guard::Else, "end")
        .node("", shell("#quot; \\n 1. list _a_ *b*"))
        .then("\u{FEFF}end \u{0}\u{FFFE}")
        .node("\u{FEFF}end \u{0}\u{FFFE}", wait(1))
        .then("end");
    let mut graph = graph(
        "</title><svg onload=\"x\">",
        "a & b < c > d \"e\" 'f' ]]>",
        body.body(),
    );
    graph.tasks = vec![task("\"]; end --> x", "\n\n", Body::EMPTY)].into();
    graph
}

/// All samples by name.
pub(super) fn all() -> Vec<(&'static str, Graph)> {
    vec![
        ("empty", empty()),
        ("single", single()),
        ("linear", linear()),
        ("debugger", debugger()),
        ("nested", nested()),
        ("fans", fans()),
        ("recursive", recursive()),
        ("large", large()),
        ("hostile", hostile()),
    ]
}

/// A small, deterministic source of numbers.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below the bound.
    pub(super) fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

/// A graph with arbitrary edges and containers, some of which lead nowhere.
pub(super) fn random(seed: u64) -> Graph {
    let mut dice = Dice::new(seed);
    let count = 1 + dice.roll(if seed.is_multiple_of(10) { 60 } else { 18 });
    let mut graph = graph("random", "Made by dice.", random_body(&mut dice, count));
    if dice.roll(3) == 0 {
        let size = 1 + dice.roll(6);
        let body = random_body(&mut dice, size);
        graph.tasks = vec![task("some_task", "Whatever.", body)].into();
    }
    graph
}

fn random_body(dice: &mut Dice, count: usize) -> Body {
    let mut draft = Draft::default();
    for index in 0..count {
        let kind = match dice.roll(8) {
            0 => condition("x"),
            1 => repeat("y", 3),
            2 => each("zs"),
            3 => fan_out("items", u16::try_from(dice.roll(3)).unwrap()),
            4 => finish("v"),
            _ => shell("run something"),
        };
        draft = draft.node(&format!("n{index}"), kind);
        if dice.roll(3) == 0 {
            let parent = u16::try_from(dice.roll(count + 1)).unwrap();
            draft = draft.with(|node| node.parent = Some(parent));
        }
    }
    let mut body = draft.body();
    for node in body.nodes.to_mut() {
        for at in 0..dice.roll(4) {
            let guard = match (at, dice.roll(4)) {
                (0, 0) => Guard::Always,
                (0, _) => Guard::Success,
                (1, 0) => Guard::Judged(Cow::Borrowed("something that takes words to say")),
                (1, _) => Guard::Failure,
                (_, _) => Guard::Timeout,
            };
            let to = match dice.roll(12) {
                0 => Target::Complete,
                _ => Target::Node(u16::try_from(dice.roll(count + 1)).unwrap()),
            };
            node.edges.to_mut().push(Edge { guard, to });
        }
    }
    body.entry = Target::Node(u16::try_from(dice.roll(count)).unwrap());
    body
}
