//! The terminal tools over the sessions: one method each, and one door for all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow_model::tools::{
    self, AwaitOutputRequest, AwaitOutputResponse, CommandStatus, ContentMode, ExitTerminalRequest,
    ExitTerminalResponse, GetScreenContentRequest, GetScreenContentResponse, Key, KeyCode,
    ListTerminalSessionsRequest, ListTerminalSessionsResponse, OpenTerminalRequest,
    OpenTerminalResponse, Request, RunCommandRequest, RunCommandResponse, SendInputRequest,
    SendInputResponse, TerminalSession,
};
use serde_json::Value;

use super::error::{CallError, Error};
use super::page::{last_characters, last_lines};
use super::pattern::Pattern;
use super::registry::Terminals;
use super::session::{Echoed, Pasted, Ran, Sent, Session, Way};
use super::untold::Untold;
use crate::secret;

/// How long a shell may take to show its first prompt.
const FIRST_PROMPT: Duration = Duration::from_secs(10);
/// How long a program that is still starting is waited for.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// Lines of `tail` when none are asked for, and of an answer that explains itself.
const TAIL: usize = 50;

/// Bytes of a text that are not typed key by key.
const MANY_KEYS: usize = 500;

/// How far an input goes: so many bytes of its text, and so many of its keys.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    text: usize,
    keys: usize,
}

impl Part {
    /// As far as the end of the line behind what was typed, or as all of it.
    fn line(way: Way, text: &str, keys: &[Key], typed: usize) -> Part {
        let by_line = matches!(way, Way::Line | Way::Key);
        match text[typed..].find('\n').filter(|_| by_line) {
            Some(end) if typed + end + 1 < text.len() => Part {
                text: typed + end + 1,
                keys: 0,
            },
            Some(_) | None => Part {
                text: text.len(),
                keys: keys.len(),
            },
        }
    }
}

/// A session whose program was started, or why it was not. Dropping it closes the session.
pub(crate) struct Begun(Result<Untold, Error>);

fn stamp() -> String {
    crate::run::time::iso(super::now())
}

impl Terminals {
    /// Calls a tool by name.
    ///
    /// # Errors
    ///
    /// [`CallError`] when there is no such tool or its parameters do not fit. What a terminal could
    /// not do is an answer, with `success: false` and `error`.
    pub async fn call(&self, tool: &str, parameters: Value) -> Result<Value, CallError> {
        Ok(match tool {
            "open_terminal" => {
                self.answer::<OpenTerminalRequest>(self.open(tools::request(parameters)?).await)
            }
            "send_input" => {
                self.answer::<SendInputRequest>(self.send_input(tools::request(parameters)?).await)
            }
            "get_screen_content" => self.answer::<GetScreenContentRequest>(
                self.screen_content(tools::request(parameters)?).await,
            ),
            "await_output" => self
                .answer::<AwaitOutputRequest>(self.await_output(tools::request(parameters)?).await),
            "list_terminal_sessions" => self.answer::<ListTerminalSessionsRequest>(
                self.list(tools::request(parameters)?).await,
            ),
            "exit_terminal" => {
                self.answer::<ExitTerminalRequest>(self.exit(tools::request(parameters)?).await)
            }
            "run_command" => self
                .answer::<RunCommandRequest>(self.run_command(tools::request(parameters)?).await),
            _ => return Err(CallError::NoTool(tool.to_owned())),
        })
    }

    fn answer<R: Request>(&self, response: R::Response) -> Value {
        // The response types have text keys and finite numbers, which every value can hold.
        serde_json::to_value(self.masked(response)).unwrap_or(Value::Null)
    }

    /// Opens a session and waits for its first prompt, or for its program to fall quiet. Whoever
    /// does not wait for the answer leaves no session behind.
    pub async fn open(&self, request: OpenTerminalRequest) -> OpenTerminalResponse {
        let begun = self.begin(&request);
        Terminals::told(request, begun).await
    }

    /// The same for whoever must know why a session cannot be opened.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] and [`Error::TooMany`] when the policy says no; those of starting a
    /// program.
    pub async fn try_open(
        &self,
        request: OpenTerminalRequest,
    ) -> Result<OpenTerminalResponse, Error> {
        let begun = Begun(Ok(self.begin(&request).0?));
        Ok(Terminals::told(request, begun).await)
    }

    /// The same; also gives the session, which is closed unless [`Untold::told`] is said: for whoever
    /// cannot be sure that the answer is heard.
    pub async fn open_untold(
        &self,
        request: OpenTerminalRequest,
    ) -> (OpenTerminalResponse, Option<Untold>) {
        let begun = self.begin(&request);
        Terminals::opened(request, begun).await
    }

    async fn told(request: OpenTerminalRequest, begun: Begun) -> OpenTerminalResponse {
        let (response, untold) = Terminals::opened(request, begun).await;
        if let Some(untold) = untold {
            untold.told();
        }
        response
    }

    /// Starts the program of a session, which is known from then on.
    pub(crate) fn begin(&self, request: &OpenTerminalRequest) -> Begun {
        let directory = request.working_directory.as_deref();
        let started = self.start(&request.shell, directory, &request.environment);
        Begun(started.map(|session| Untold::new(self, session)))
    }

    /// Waits for the first prompt of a session that was begun, or for its program to fall quiet.
    /// Also gives the session, which is closed unless somebody is told of it.
    pub(crate) async fn opened(
        request: OpenTerminalRequest,
        begun: Begun,
    ) -> (OpenTerminalResponse, Option<Untold>) {
        let mut response = OpenTerminalResponse {
            success: false,
            session_id: None,
            shell: request.shell,
            web_url: None,
            screen_content: None,
            timestamp: String::new(),
            error: None,
        };
        let failed = |error: &Error| response.error = Some(error.to_string());
        let untold = begun.0.inspect_err(failed).ok();
        if let Some(session) = untold.as_ref().and_then(Untold::session) {
            let limit = match session.program.shell {
                Some(_) => FIRST_PROMPT,
                None => FIRST_WORD,
            };
            session.settled(limit).await;
            response.success = true;
            response.session_id = Some(session.id.clone());
            response.screen_content = Some(session.visible());
        }
        response.timestamp = stamp();
        (response, untold)
    }

    /// Types text and presses keys.
    pub async fn send_input(&self, request: SendInputRequest) -> SendInputResponse {
        let mut response = SendInputResponse {
            success: false,
            session_id: None,
            message: String::new(),
            screen_content: None,
            process_running: false,
            timestamp: String::new(),
            error: None,
        };
        let mut typed = 0;
        let sent = match self.session(request.session_id.as_deref()) {
            Ok(session) => {
                response.session_id = Some(session.id.clone());
                let sent = self.type_in(&session, &request, &mut typed).await;
                response.process_running = session.is_running();
                response.screen_content = Some(session.visible());
                sent
            }
            Err(error) => Err(error),
        };
        match sent {
            Ok(Sent { waiting, pasted }) => {
                response.success = true;
                response.message = match (request.input_text.len(), request.keys.len()) {
                    (bytes, 0) => format!("typed {}", counted(bytes, "byte")),
                    (0, keys) => format!("pressed {}", counted(keys, "key")),
                    (bytes, keys) => format!(
                        "typed {} and pressed {}",
                        counted(bytes, "byte"),
                        counted(keys, "key")
                    ),
                };
                response.message.push_str(match pasted {
                    None => "",
                    Some(Pasted::ToProgram) => ", the lines as one paste",
                    Some(Pasted::ToShell) => {
                        ", the lines as one paste, which the shell reads whole: send what is for a \
                         program that one of them starts in another call"
                    }
                });
                if waiting > 0 {
                    response.message.push_str(&format!(
                        "; {waiting} bytes wait until the program reads its input"
                    ));
                }
            }
            Err(error) => {
                response.message = match typed {
                    0 => "nothing was typed".to_owned(),
                    _ => format!("typed only the first {}", counted(typed, "byte")),
                };
                response.error = Some(error.to_string());
            }
        }
        response.timestamp = stamp();
        response
    }

    /// Types what is asked for, when whom it is for is there. `typed` counts the bytes of the text.
    async fn type_in(
        &self,
        session: &Arc<Session>,
        request: &SendInputRequest,
        typed: &mut usize,
    ) -> Result<Sent, Error> {
        let signals = signals(request);
        if interrupts(request) {
            session.stop_lines();
        }
        let mut passage = session.passage();
        let (text, keys) = (&*request.input_text, &*request.keys);
        let (mut pressed, mut recorded, mut pasted) = (0, Part::default(), None);
        loop {
            let turn = session.turn.lock().await;
            // What signals goes before all that waits for who reads it.
            let way = match signals {
                true => Way::All,
                false => match passage.way() {
                    Some(way) => way?,
                    None => {
                        drop(turn);
                        passage.opens().await;
                        continue;
                    }
                },
            };
            session.signalled().await;
            session.interrupted().await;
            session.handed_over().await;
            if signals {
                session.begun().await;
            }
            if ends_input(request) {
                session.reading().await;
            }
            let left = &text[*typed..];
            let line = Part::line(way, text, keys, *typed);
            let all = Part::line(Way::All, text, keys, *typed);
            let mut echoed = Echoed::Typed;
            let part = match way {
                // A sequence is a key, who gets much reads on, and a paste is one.
                Way::Key if left.contains('\x1b') || left.len() > MANY_KEYS => all,
                Way::Key if session.pastes() && left.trim_end_matches('\n').contains('\n') => all,
                Way::Key => match left.chars().next() {
                    Some(key) => {
                        echoed = match *typed == 0 || text[..*typed].ends_with('\n') {
                            true => Echoed::Line(first_line(left, keys)),
                            false => Echoed::Before,
                        };
                        Part {
                            text: *typed + key.len_utf8(),
                            keys: 0,
                        }
                    }
                    None => Part {
                        text: *typed,
                        keys: pressed + 1,
                    },
                },
                Way::All | Way::Line | Way::Keys => line,
            };
            let now = &text[*typed..part.text];
            // Several lines are pasted where the program takes that.
            if now.trim_end_matches('\n').contains('\n') {
                session.pasteable(Duration::MAX).await;
            }
            // Once, also when the way was closed again, and the keys of a line together.
            if recorded.text < part.text || recorded.keys < part.keys {
                let line = if line.text < part.text { part } else { line };
                let keys = &keys[recorded.keys..line.keys.max(recorded.keys)];
                self.record_input(session, &text[recorded.text..line.text], keys)?;
                recorded = line;
            }
            let keys_now = &keys[pressed..part.keys.max(pressed)];
            let sent = match signals {
                true => Some(session.send(now, keys_now)),
                false => session.pass((way, &mut passage), now, keys_now, echoed),
            };
            let Some(sent) = sent else {
                continue;
            };
            let sent = sent?;
            pasted = sent.pasted.or(pasted);
            if way == Way::Keys {
                session.takes_keys().await;
            }
            (*typed, pressed) = (part.text, part.keys.max(pressed));
            if (*typed, pressed) == (text.len(), keys.len()) {
                return Ok(Sent { pasted, ..sent });
            }
        }
    }

    /// Reads a session's text.
    pub async fn screen_content(
        &self,
        request: GetScreenContentRequest,
    ) -> GetScreenContentResponse {
        let mut response = GetScreenContentResponse {
            success: false,
            session_id: None,
            process_running: false,
            screen_content: None,
            next_cursor: None,
            timestamp: stamp(),
            error: None,
        };
        let session = match self.session(request.session_id.as_deref()) {
            Ok(session) => session,
            Err(error) => {
                response.error = Some(error.to_string());
                return response;
            }
        };
        response.session_id = Some(session.id.clone());
        response.process_running = session.is_running();
        let most = request.max_chars as usize;
        let lines = request.line_count.map(|count| count as usize);
        let page = match &request.cursor {
            Some(cursor) => session.book().turn(cursor, most),
            None => {
                let (text, lines) = match request.content_mode {
                    ContentMode::Screen => (session.visible(), lines),
                    ContentMode::SinceInput => (session.since_input(), lines),
                    ContentMode::History => (session.history(), lines),
                    ContentMode::Tail => (session.history(), Some(lines.unwrap_or(TAIL))),
                };
                let text = match lines {
                    Some(count) => last_lines(&text, count),
                    None => &text,
                };
                Some(session.book().open(text, most))
            }
        };
        let Some(page) = page else {
            let error = "`cursor` leads nowhere: pass the `next_cursor` of the previous answer, \
                         and read a text to its end before another";
            response.error = Some(error.to_owned());
            return response;
        };
        response.success = true;
        if session.lost_screen() {
            let note = "some output made the emulator fail; what was shown before it is lost";
            response.error = Some(note.to_owned());
        }
        response.screen_content = Some(page.text);
        response.next_cursor = page.next;
        response
    }

    /// Waits for output.
    pub async fn await_output(&self, request: AwaitOutputRequest) -> AwaitOutputResponse {
        let began = Instant::now();
        let mut response = AwaitOutputResponse {
            success: false,
            session_id: None,
            match_text: None,
            screen_content: None,
            elapsed_time: 0.0,
            process_running: false,
            tail: None,
            foreground: None,
            timestamp: String::new(),
            error: None,
        };
        let pattern = Pattern::cached(&request.pattern).map_err(|error| error.to_string());
        let session = self
            .session(request.session_id.as_deref())
            .map_err(|error| error.to_string());
        match (session, pattern) {
            (Ok(session), Ok(pattern)) => {
                response.session_id = Some(session.id.clone());
                let limit = seconds(request.timeout);
                let found = session.watch(pattern, request.target).found(limit).await;
                response.success = true;
                response.process_running = session.is_running();
                response.screen_content = Some(session.visible());
                if found.is_none() {
                    response.tail = Some(session.tail(TAIL));
                    response.foreground = session.seen().foreground;
                }
                response.match_text = found;
            }
            (Err(error), _) | (_, Err(error)) => response.error = Some(error),
        }
        response.elapsed_time = began.elapsed().as_secs_f64();
        response.timestamp = stamp();
        response
    }

    /// Lists the sessions.
    pub async fn list(
        &self,
        _request: ListTerminalSessionsRequest,
    ) -> ListTerminalSessionsResponse {
        let sessions: Vec<_> = self.all().iter().map(|session| describe(session)).collect();
        ListTerminalSessionsResponse {
            success: true,
            total_sessions: u32::try_from(sessions.len()).unwrap_or(u32::MAX),
            sessions,
            timestamp: stamp(),
            error: None,
        }
    }

    /// Closes a session.
    pub async fn exit(&self, request: ExitTerminalRequest) -> ExitTerminalResponse {
        let session = self.session(request.session_id.as_deref());
        let (session_id, closed) = match session {
            Ok(session) => {
                let closed = self.close(&session.id).await;
                (Some(session.id.clone()), closed)
            }
            Err(error) => (None, Err(error)),
        };
        let (success, message, error) = match closed {
            Ok(true) => (true, "the session is closed".to_owned(), None),
            Ok(false) => {
                let error = "something that the session started could not be ended".to_owned();
                (false, "the session is closed".to_owned(), Some(error))
            }
            Err(error) => (
                false,
                "nothing was closed".to_owned(),
                Some(error.to_string()),
            ),
        };
        ExitTerminalResponse {
            success,
            session_id,
            message,
            timestamp: stamp(),
            error,
        }
    }

    /// Interrupts a command that nobody waits for any more, if a run has typed it, or lines of it are
    /// left: what is typed next would belong to it.
    /// Tells whoever wants to know what a command has written that is not waited for any longer.
    fn tell_left(&self, session: &Session, ran: &Ran, most: usize) {
        let Some(hears) = &self.hears else {
            return;
        };
        let text = String::from_utf8_lossy(whole_characters(ran)).into_owned();
        let mut text = session.without_begun(last_characters(&text, most).0.to_owned());
        for secrets in [&self.secrets(&session.id), &self.kept] {
            text = match secrets.text(&text) {
                Some(scrubbed) => secret::mask(&scrubbed).into_owned(),
                None => text,
            };
        }
        hears(text);
    }

    fn give_up(&self, session: &Session, is_partial: bool) {
        if is_partial || self.interrupts_until.is_some_and(|it| super::now() < it) {
            let key = Key {
                ctrl: true,
                alt: false,
                shift: false,
                code: KeyCode::Char('c'),
            };
            // What cannot be recorded is not typed; one that has ended needs nothing.
            let recorded = self.record_command(session, "", &[key]);
            if recorded.is_ok() {
                session.give_up(key);
            }
        }
    }

    /// Runs a command at a shell's prompt and waits for its end.
    pub async fn run_command(&self, request: RunCommandRequest) -> RunCommandResponse {
        let mut response = RunCommandResponse {
            success: false,
            session_id: None,
            status: None,
            exit_code: None,
            output: String::new(),
            output_base64: None,
            truncated: false,
            duration: 0.0,
            working_directory: None,
            foreground: None,
            process_running: false,
            timestamp: String::new(),
            error: None,
        };
        let session = self.session(request.session_id.as_deref());
        let recorded = session.and_then(|session| {
            response.session_id = Some(session.id.clone());
            self.record_command(&session, &request.command, &[])?;
            Ok(session)
        });
        match recorded {
            Ok(session) => {
                let most = request.max_chars as usize;
                // A character has at most four bytes.
                let keep = most.saturating_mul(4);
                let ran = session
                    .run(
                        &request.command,
                        seconds(request.timeout),
                        keep,
                        |session, is_partial, ran| {
                            self.tell_left(session, &ran, most);
                            self.give_up(session, is_partial);
                        },
                    )
                    .await;
                let seen = session.seen();
                let kept = whole_characters(&ran);
                let text = String::from_utf8_lossy(kept);
                let (output, cut) = last_characters(&text, most);
                response.truncated = cut || !ran.complete;
                // No text would be masked there.
                let is_bytes = matches!(text, std::borrow::Cow::Owned(_));
                let told = self.secrets(&session.id);
                if is_bytes && !told.finds(kept) && !self.kept.finds(kept) {
                    response.output_base64 = Some(base64(kept));
                }
                response.output = match ran.status {
                    CommandStatus::Finished => output.to_owned(),
                    _ => session.without_begun(output.to_owned()),
                };
                response.success = ran.status == CommandStatus::Finished && ran.code == Some(0);
                response.status = Some(ran.status);
                response.exit_code = ran.code;
                response.duration = ran.duration.as_secs_f64();
                response.process_running = seen.running;
                response.working_directory = seen.directory;
                if !matches!(
                    ran.status,
                    CommandStatus::Finished | CommandStatus::NoCommand | CommandStatus::Incomplete
                ) {
                    response.foreground = seen.foreground;
                }
                response.error = ran.note;
            }
            Err(error) => response.error = Some(error.to_string()),
        }
        response.timestamp = stamp();
        response
    }
}

/// Whether an input has a key for which the kernel sends a signal, and throws away what nobody has
/// read: ctrl-c, ctrl-z, ctrl-\.
fn signals(request: &SendInputRequest) -> bool {
    let is_signal = |key: &Key| key.ctrl && matches!(key.code, KeyCode::Char('c' | 'z' | '\\'));
    let mut keys = request.keys.iter();
    request.input_text.contains(['\x03', '\x1a', '\x1c']) || keys.any(is_signal)
}

/// Whether an input has a ctrl-c.
fn interrupts(request: &SendInputRequest) -> bool {
    let is_interrupt = |key: &Key| key.ctrl && key.code == KeyCode::Char('c');
    request.input_text.contains('\x03') || request.keys.iter().any(is_interrupt)
}

/// Whether an input has what ends the input of a program that reads lines: ctrl-d.
fn ends_input(request: &SendInputRequest) -> bool {
    let is_end = |key: &Key| key.ctrl && !key.alt && key.code == KeyCode::Char('d');
    request.input_text.contains('\x04') || request.keys.iter().any(is_end)
}

/// The output of a command without a first character that has lost its beginning.
fn whole_characters(ran: &Ran) -> &[u8] {
    let kept = &*ran.output;
    let first = kept.iter().take(if ran.complete { 0 } else { 3 });
    let cut = first.take_while(|byte| **byte & 0xc0 == 0x80).count();
    &kept[cut..]
}

/// The first line of a text, with the line end that is perhaps a key behind it.
fn first_line(text: &str, keys: &[Key]) -> String {
    let is_enter = |key: &Key| !key.ctrl && !key.alt && key.code == KeyCode::Enter;
    match text.split_once('\n') {
        Some((line, _)) => format!("{line}\n"),
        None if keys.first().is_some_and(is_enter) => format!("{text}\n"),
        None => text.to_owned(),
    }
}

/// How many there are of something.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn describe(session: &Session) -> TerminalSession {
    let seen = session.seen();
    TerminalSession {
        session_id: session.id.clone(),
        shell: session.program.asked.clone(),
        process_running: seen.running,
        foreground: seen.foreground,
        working_directory: seen.directory,
        exit_code: seen.exit.and_then(super::session::Exit::code),
        web_url: None,
        created_at: crate::run::time::iso(session.created_at),
    }
}

fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::from_secs(7200))
}

/// Bytes that are not text, as text.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            let letter = match place <= chunk.len() {
                true => LETTERS[(word >> (18 - 6 * place) & 63) as usize],
                false => b'=',
            };
            text.push(char::from(letter));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]
    use serde_json::json;

    use super::{Arc, base64};
    use crate::secret::Secret;
    use crate::terminal::{Options, Terminals};

    #[tokio::test]
    async fn a_secret_is_masked_whatever_others_are_and_our_own_words_never() {
        let words = ["SecretAlpha99", "time", "succ", "finished", "session_id"];
        let told = words.iter().enumerate().map(|(number, word)| Secret {
            run: "r-1".to_owned(),
            input: format!("s{number}"),
            value: (*word).to_owned(),
        });
        let terminals = Terminals::new(Options::default()).unwrap();
        let telling = terminals.clone().telling(told.collect(), Arc::default());
        let opened = telling.call("open_terminal", json!({"shell": "sh"}));
        assert_eq!(opened.await.unwrap()["success"], true);
        let command = json!({"command": "echo SecretAlpha99 finished"});
        let ran = terminals.call("run_command", command).await.unwrap();
        assert_eq!(ran["output"], "[secret s0] [secret s3]\n");
        assert_eq!(ran["status"], "finished");
        assert!(ran["timestamp"].is_string() && ran["session_id"].is_string());
        let screen = terminals.call("get_screen_content", json!({})).await;
        let screen = screen.unwrap()["screen_content"].to_string();
        assert!(
            !screen.contains("Alpha") && screen.contains("[secret s0]"),
            "{screen}"
        );
        let command = json!({"command": r"printf 'SecretAlpha99\377'"});
        let ran = terminals.call("run_command", command).await.unwrap();
        assert_eq!(
            (&ran["output"], &ran["output_base64"]),
            (&json!("[secret s0]\u{fffd}"), &json!(null))
        );
        let ran = terminals
            .call("run_command", json!({"command": r"printf '\377'"}))
            .await;
        assert_eq!(ran.unwrap()["output_base64"], "/w==");
        // Another session has been told nothing.
        let opened = terminals.call("open_terminal", json!({"shell": "sh"}));
        assert_eq!(opened.await.unwrap()["success"], true);
        let command = json!({"command": "echo SecretAlpha99"});
        let ran = terminals.call("run_command", command).await.unwrap();
        assert_eq!(ran["output"], "SecretAlpha99\n");
        terminals.close_all().await;
    }

    #[test]
    fn bytes_are_written_in_base64() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xfe", "//4="),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }
}
