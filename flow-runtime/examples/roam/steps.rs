//! What a sequence is made of, and how one is drawn from a seed.

use crate::support::Random;

/// One call, or a moment without one. What is typed logs a word with a number of its own when it runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A line that is not entered; `Open` leaves room for a command behind it.
    Half(Edge),
    /// The same, and keys behind it in one call.
    HalfThen(Edge, Vec<&'static str>),
    /// A whole line.
    Line,
    /// A whole line that the key enter ends, in one call.
    LineThenEnter,
    /// Several whole lines in one call.
    Lines(u64),
    /// Nothing but line ends.
    Blank(u64),
    /// A line that starts a program which stays in front.
    Start(Program),
    /// The same by the key enter, and keys behind that in one call.
    StartThen(Program, Vec<&'static str>),
    /// A line that is at work for a moment.
    Nap,
    /// A line that leaves something in the background which writes.
    Background,
    /// A line that changes the shell.
    Change(Setting),
    /// Keys in one call.
    Keys(Vec<&'static str>),
    /// So many microseconds.
    Pause(u64),
    /// A command that is followed.
    Run(Command),
    /// Waits for what the last line says.
    AwaitSaid,
    /// Waits for what was only typed.
    AwaitTyped,
    /// Reads the session in one of its modes.
    Look(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Edge {
    Open,
    Tight,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Program {
    Cat,
    Sleep,
    Read,
    Shell,
}

impl Program {
    pub(crate) fn line(self) -> &'static str {
        match self {
            Program::Cat => "cat",
            Program::Sleep => "sleep 1000",
            Program::Read => "read x",
            Program::Shell => "sh",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Setting {
    Vi,
    Emacs,
    EchoOff,
    EchoOn,
    Prompt,
    TallPrompt,
    /// Interrupts are ignored, by what is started as well.
    Deaf,
    /// The messages of the shell go to a file from then on.
    Messages,
}

impl Setting {
    /// The command, where the shell has one.
    pub(crate) fn line(self, shell: &str) -> Option<&'static str> {
        Some(match (self, shell) {
            (Setting::Vi, "fish") => "fish_vi_key_bindings",
            (Setting::Vi, "zsh") => "bindkey -v",
            (Setting::Vi, _) => "set -o vi",
            (Setting::Emacs, "fish") => "fish_default_key_bindings",
            (Setting::Emacs, "zsh") => "bindkey -e",
            (Setting::Emacs, _) => "set -o emacs",
            (Setting::EchoOff, _) => "stty -echo",
            (Setting::EchoOn, _) => "stty echo",
            // Its prompt is what dash is followed by.
            (Setting::Prompt | Setting::TallPrompt, "dash") => return None,
            (Setting::Prompt, "fish") => "function fish_prompt; echo -n 'other> '; end",
            (Setting::Prompt, _) => "PS1='other> '",
            (Setting::TallPrompt, "fish") => "function fish_prompt; echo -en 'two\\nlines> '; end",
            (Setting::TallPrompt, _) => "PS1=$'two\\nlines> '",
            (Setting::Deaf | Setting::Messages, "fish") => return None,
            (Setting::Deaf, _) => "trap '' INT",
            // What a key has put behind it is not executed in the shell's place.
            (Setting::Messages, _) => "{ exec 2>\"$LOG.messages\"; }",
        })
    }

    /// What undoes all of them but `Messages`.
    pub(crate) fn undo(shell: &str) -> &'static str {
        match shell {
            "bash" => "stty echo; trap - INT; set -o emacs; PS1='$ '",
            "zsh" => "stty echo; trap - INT; bindkey -e; PS1='%% '",
            "fish" => {
                "stty echo; fish_default_key_bindings; function fish_prompt; echo -n '> '; end"
            }
            _ => "stty echo; trap - INT; set -o emacs",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Command {
    Plain,
    Failing,
    Incomplete,
    Unreadable,
    Lines,
    Tab,
    Comment,
    Endless,
    Change(Setting),
}

const SETTINGS: [Setting; 6] = [
    Setting::Vi,
    Setting::Emacs,
    Setting::EchoOff,
    Setting::EchoOn,
    Setting::Prompt,
    Setting::TallPrompt,
];

const KEYS: [&str; 14] = [
    "escape",
    "ctrl-c",
    "ctrl-l",
    "ctrl-u",
    "ctrl-z",
    "ctrl-r",
    "ctrl-v",
    "tab",
    "up",
    "left",
    "backspace",
    "enter",
    "ctrl-\\",
    "alt-b",
];

/// What people press most; the others have their turn through [`KEYS`].
const USUAL: [&str; 4] = ["ctrl-c", "ctrl-c", "ctrl-d", "enter"];

fn one_of<T: Clone>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize].clone()
}

fn edge(random: &mut Random) -> Edge {
    one_of(random, &[Edge::Open, Edge::Tight])
}

fn program(random: &mut Random) -> Program {
    use Program::{Cat, Read, Shell, Sleep};
    one_of(random, &[Cat, Sleep, Sleep, Read, Shell])
}

fn setting(random: &mut Random) -> Setting {
    match random.below(20) {
        0 => Setting::Messages,
        1 | 2 => Setting::Deaf,
        _ => one_of(random, &SETTINGS),
    }
}

fn keys(random: &mut Random, most: u64) -> Vec<&'static str> {
    (0..=random.below(most))
        .map(|_| one_of(random, &KEYS))
        .collect()
}

fn command(random: &mut Random) -> Command {
    match random.below(16) {
        0..=6 => Command::Plain,
        7 => Command::Failing,
        8 | 9 => Command::Incomplete,
        10 => Command::Unreadable,
        11 => Command::Lines,
        12 => Command::Tab,
        13 => Command::Comment,
        14 => Command::Endless,
        _ => Command::Change(setting(random)),
    }
}

fn step(random: &mut Random, plain: bool) -> Step {
    // Without keys, half lines and programs everything that is typed is known to run.
    let kinds = if plain { 16 } else { 36 };
    match random.below(kinds) {
        0..=2 => Step::Run(match (command(random), plain) {
            (Command::Endless, true) => Command::Plain,
            (command, _) => command,
        }),
        3 | 4 => Step::Line,
        5 => Step::LineThenEnter,
        6 => Step::Lines(2 + random.below(2)),
        7 => Step::Blank(1 + random.below(2)),
        8 => Step::Nap,
        9 => Step::Background,
        10 => Step::Change(setting(random)),
        11 => Step::AwaitSaid,
        12 => Step::AwaitTyped,
        13 => Step::Look(one_of(
            random,
            &["screen", "since_input", "history", "tail"],
        )),
        14 | 15 => Step::Pause(match random.below(4) {
            0 => random.below(100_000),
            1 => random.below(20_000),
            _ => random.below(3_000),
        }),
        16..=19 => Step::Half(edge(random)),
        20 | 21 => Step::HalfThen(edge(random), keys(random, 2)),
        22..=24 => Step::Start(program(random)),
        25 => Step::StartThen(program(random), keys(random, 2)),
        26..=30 => Step::Keys(vec![one_of(random, &USUAL)]),
        31..=34 => Step::Keys(vec![one_of(random, &KEYS)]),
        _ => Step::Keys(keys(random, 4)),
    }
}

/// The sequence of a seed. A plain one has nothing in it that could leave the shell in doubt.
pub(crate) fn sequence(seed: u64, plain: bool) -> Vec<Step> {
    let mut random = Random::new(seed);
    let count = 2 + random.below(9);
    (0..count).map(|_| step(&mut random, plain)).collect()
}
