//! Processes of a terminal, as the system knows them.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable by which everything that a session started is known, even what has left its
/// process group and its terminal.
pub(super) const MARKER: &str = "FLOW_TERMINAL";

/// The flag of Linux for a process that has not executed a program since it was forked.
const FORKED: u64 = 0x40;

/// What `/proc` says of a process.
struct Stat {
    name: String,
    dead: bool,
    /// Waits for something that a signal would interrupt.
    waits: bool,
    /// Neither runs nor waits for the disk.
    sleeps: bool,
    group: i32,
    session: i32,
    /// Is a copy of the process that started it, and has not become a program of its own.
    forked: bool,
    /// Processor time so far, in the system's ticks.
    ticks: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        Stat::read(&format!("/proc/{pid}/stat"))
    }

    /// Of every thread of a process.
    fn threads(pid: i32) -> impl Iterator<Item = Stat> {
        fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .filter_map(|entry| Stat::read(entry.ok()?.path().join("stat").to_str()?))
    }

    fn read(path: &str) -> Option<Stat> {
        // It says nothing of its size, and always fits.
        let mut text = Vec::with_capacity(1024);
        fs::File::open(path).ok()?.read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name stands in parentheses and may contain anything.
        let (before, fields) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        Some(Stat {
            name: name.to_owned(),
            dead: matches!(*fields.first()?, "Z" | "X"),
            waits: *fields.first()? == "S",
            sleeps: matches!(*fields.first()?, "S" | "T" | "t" | "I"),
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            forked: fields.get(6)?.parse::<u64>().ok()? & FORKED != 0,
            ticks: fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?,
        })
    }
}

fn all() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The name of a process group: that of its leader, else of any member.
pub(super) fn group_name(group: i32) -> Option<String> {
    if let Some(leader) = Stat::of(group).filter(|stat| !stat.dead) {
        return Some(leader.name);
    }
    all()
        .filter_map(Stat::of)
        .find(|stat| stat.group == group && !stat.dead)
        .map(|stat| stat.name)
}

/// How much a session has computed when all of it sleeps; `None` while something is at work, or
/// where the system does not tell.
pub(super) fn asleep(session: i32) -> Option<u64> {
    let mut ticks = 0;
    let mut found = false;
    for pid in all() {
        let Some(stat) = Stat::of(pid) else {
            continue;
        };
        if stat.session == session && !stat.dead {
            // A process may sleep over what its threads do.
            if !Stat::threads(pid).all(|thread| thread.sleeps) {
                return None;
            }
            found = true;
            ticks += stat.ticks;
        }
    }
    found.then_some(ticks)
}

/// Processor time that a session has used so far, in the system's ticks; `None` where the system does
/// not tell.
pub(super) fn work(session: i32) -> Option<u64> {
    let members = all()
        .filter_map(Stat::of)
        .filter(|it| it.session == session);
    members
        .map(|stat| stat.ticks)
        .reduce(|sum, ticks| sum + ticks)
}

/// Whether a shell waits for what it has started in the process group in front, and all of that has
/// become the programs it is to be: until then it would take a signal for the shell's. Where the
/// system does not tell, it has not.
pub(super) fn has_become(shell: i32, front: i32) -> bool {
    let sleeps = || switches(shell).filter(|_| Stat::of(shell).is_some_and(|it| it.waits));
    let Some(before) = sleeps() else {
        return false;
    };
    let mut found = false;
    for (pid, stat) in all().filter_map(|pid| Some((pid, Stat::of(pid)?))) {
        // What it has started is in its own group for a moment.
        let is_its = stat.group == front || stat.group == shell && stat.session == shell;
        if !is_its || pid == shell || stat.dead {
            continue;
        }
        if stat.forked {
            return false;
        }
        found |= stat.group == front;
    }
    // Who has slept all the while has started nothing else meanwhile.
    found && sleeps() == Some(before)
}

/// How often a process was given a processor, or took turns.
fn switches(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut counts = status
        .lines()
        .filter_map(|line| line.split_once("voluntary_ctxt_switches:"))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok());
    Some(counts.next()? + counts.next()?)
}

/// Whether something in a session is at work. Where the system does not tell, nothing is.
pub(super) fn works(session: i32) -> bool {
    let members = all().filter(|pid| Stat::of(*pid).is_some_and(|it| it.session == session));
    members
        .flat_map(Stat::threads)
        .any(|thread| !thread.sleeps && !thread.dead)
}

/// Whether a process has nothing to do, and no signal to handle either; `None` where the system
/// does not tell.
pub(super) fn waits(pid: i32) -> Option<bool> {
    let mut threads = Stat::threads(pid).peekable();
    threads.peek()?;
    Some(threads.all(|thread| thread.waits))
}

/// Whether something in a process group does nothing but wait for input from its terminal. Where
/// the system does not tell, nothing does.
pub(super) fn reads_terminal(group: i32) -> bool {
    let members =
        all().filter(|pid| Stat::of(*pid).is_some_and(|it| it.group == group && it.waits));
    members.map(awaits).any(|what| what == Awaits::Terminal)
}

/// What a process sleeps over, as far as the system tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// Input from a terminal, and nothing else.
    Terminal,
    /// Another file: what a command of its own writes.
    File,
    /// Something else: a process, a moment, several files.
    Other,
    Unknown,
}

pub(super) fn awaits(pid: i32) -> Awaits {
    // A process with several threads may have others at work.
    if Stat::threads(pid).count() != 1 {
        return Awaits::Unknown;
    }
    match awaited_file(pid) {
        None => Awaits::Unknown,
        Some(None) => Awaits::Other,
        Some(Some(file)) if is_terminal(pid, file) => Awaits::Terminal,
        Some(Some(_)) => Awaits::File,
    }
}

/// Whether a process waits for input from a terminal, for as much as there is. Where the system does
/// not tell, it does not.
pub(super) fn reads_blocks(pid: i32) -> bool {
    let length = || call(pid)?.1.get(2).copied();
    awaits(pid) == Awaits::Terminal && length().is_some_and(|length| length > 1)
}

/// The numbers of system calls by which a program waits for files.
struct Calls {
    read: u64,
    pselect: u64,
    /// Those by which it waits for several.
    several: &'static [u64],
}

const CALLS: Option<Calls> = {
    #[cfg(not(target_os = "linux"))]
    {
        None
    }
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        Some(Calls {
            read: 0,
            pselect: 270,
            several: &[7, 23, 270, 271],
        })
    }
    // Architectures that came late share one table.
    #[cfg(all(
        target_os = "linux",
        any(
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64"
        )
    ))]
    {
        Some(Calls {
            read: 63,
            pselect: 72,
            several: &[72, 73],
        })
    }
    #[cfg(all(target_os = "linux", target_arch = "x86"))]
    {
        Some(Calls {
            read: 3,
            pselect: 308,
            several: &[82, 142, 168, 308, 309, 413, 414],
        })
    }
    #[cfg(all(target_os = "linux", target_arch = "arm"))]
    {
        Some(Calls {
            read: 3,
            pselect: 335,
            several: &[142, 168, 335, 336, 413, 414],
        })
    }
    #[cfg(all(target_os = "linux", target_arch = "powerpc64"))]
    {
        Some(Calls {
            read: 3,
            pselect: 280,
            several: &[82, 142, 167, 280, 281],
        })
    }
    #[cfg(all(target_os = "linux", target_arch = "s390x"))]
    {
        Some(Calls {
            read: 3,
            pselect: 301,
            several: &[142, 168, 301, 302],
        })
    }
    #[cfg(all(
        target_os = "linux",
        not(any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "x86",
            target_arch = "arm",
            target_arch = "powerpc64",
            target_arch = "s390x"
        ))
    ))]
    {
        None
    }
};

/// Whether a process that sleeps may do so over its input, and does not for a moment or a process. Where
/// the system does not tell, it may.
pub(super) fn awaits_input(pid: i32) -> bool {
    awaits(pid) == Awaits::Terminal || polls(pid).unwrap_or(true)
}

/// Whether the first thread of a process waits for files, and neither for a process nor for a thread;
/// `None` where the system does not tell.
pub(super) fn polls(pid: i32) -> Option<bool> {
    let (number, _) = call(pid)?;
    Some(CALLS?.several.contains(&number))
}

/// The only file that a process waits for, for as long as it takes, if it is that what it waits
/// for; `None` where the system does not tell.
fn awaited_file(pid: i32) -> Option<Option<u64>> {
    let Calls { read, pselect, .. } = CALLS?;
    let (number, arguments) = call(pid)?;
    Some(match *arguments.as_slice() {
        [file, ..] if number == read => Some(file),
        // Files below 1, and no time limit: as line editors wait.
        [1, _, _, _, 0, ..] if number == pselect => Some(0),
        _ => None,
    })
}

/// The number of the system call in which a process is, and its arguments.
fn call(pid: i32) -> Option<(u64, Vec<u64>)> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut fields = call.split_ascii_whitespace();
    let number: u64 = fields.next()?.parse().ok()?;
    let hexadecimal = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok();
    Some((number, fields.filter_map(hexadecimal).collect()))
}

fn is_terminal(pid: i32, file: u64) -> bool {
    let target = fs::read_link(format!("/proc/{pid}/fd/{file}"));
    target.is_ok_and(|path| path.starts_with("/dev/pts") || path == Path::new("/dev/tty"))
}

/// The command line a process runs now; it changes when the process executes another program.
pub(super) fn image(pid: i32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/cmdline"))
        .ok()
        .filter(|line| !line.is_empty())
}

/// Whether a process would be dead, had it got an interrupt: it neither handles nor ignores nor
/// blocks that. Where the system does not tell, it may have got it.
pub(super) fn dies_of_interrupt(pid: i32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return false;
    };
    let interrupt = 1_u64 << (Signal::INT.as_raw() - 1);
    let masks = ["SigBlk:", "SigIgn:", "SigCgt:"].map(|field| {
        let mask = status.lines().find_map(|line| line.strip_prefix(field));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
    });
    masks
        .iter()
        .all(|mask| mask.is_some_and(|mask| mask & interrupt == 0))
}

/// The directory a process works in.
pub(super) fn directory(pid: i32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let told = path.to_string_lossy();
    // So Linux says of one that was removed, which no longer has a path of its own.
    match told.strip_suffix(" (deleted)") {
        Some(removed) if !path.exists() => Some(removed.to_owned()),
        Some(_) | None => Some(told.into_owned()),
    }
}

/// Kills what carries the mark of a session, until nothing does. What is being started while others
/// are killed is found in the next round.
pub(super) fn end_marked(marker: &str) {
    for _ in 0..10 {
        let members = members(None, marker);
        if members.is_empty() {
            return;
        }
        for pid in &members {
            signal(*pid, Signal::KILL);
        }
        wait(&members, Duration::from_secs(1));
    }
}

/// The living processes of a session: of its terminal, if there is one, or started by it and gone
/// elsewhere.
pub(super) fn members(session: Option<i32>, marker: &str) -> Vec<i32> {
    let entry = format!("{MARKER}={marker}").into_bytes();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let marked = |pid: i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|item| item == entry))
    };
    all()
        .filter(|pid| *pid != own)
        .filter(|pid| {
            Stat::of(*pid)
                .is_some_and(|stat| !stat.dead && (Some(stat.session) == session || marked(*pid)))
        })
        .collect()
}

/// Sends a signal; a process that is gone already is what was wanted.
pub(super) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to a process group.
pub(super) fn signal_group(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = kill_process_group(group, signal);
    }
}

/// Waits until these processes are gone, or the time is up; says whether they are.
pub(super) fn wait(pids: &[i32], limit: Duration) -> bool {
    let until = Instant::now() + limit;
    for pid in pids {
        let Some(handle) = handle(*pid) else {
            continue;
        };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut set = [PollFd::new(&handle, PollFlags::IN)];
            match poll(&mut set, Some(&left)) {
                Ok(0) => return false,
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
    }
    true
}

#[cfg(target_os = "linux")]
fn handle(pid: i32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(pid)?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn handle(_pid: i32) -> Option<OwnedFd> {
    None
}
