//! Messages between a client and the server, a line each.
//!
//! The structure of a tool's answer and its text are the same JSON. Here it is made once and
//! written twice, instead of being made into a tree that is written twice.

use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonRpcMessage, JsonRpcResponse, ServerResult};
use rmcp::serde::Serialize;
use rmcp::serde::ser::Error as _;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use super::heard::{Heard, Message};

/// Room that is kept for the next line.
const KEPT: usize = 1 << 20;

/// How the structure of an answer gets to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    /// As a tree, for a transport of others.
    Tree,
    /// As the text says it, for [`Lines`].
    AsText,
}

impl Structure {
    /// An answer as a result of a tool.
    pub(super) fn result<T: Serialize>(self, answer: &T) -> serde_json::Result<CallToolResult> {
        let text = serde_json::to_string(answer)?;
        let structure = match self {
            Structure::Tree => serde_json::to_value(answer)?,
            Structure::AsText => AS_TEXT,
        };
        Ok(success(text, structure))
    }

    /// The same, of an answer that was made before.
    pub(super) fn again(self, answer: &Written) -> serde_json::Result<CallToolResult> {
        Ok(match self {
            Structure::Tree => success(answer.text.clone(), serde_json::from_str(&answer.text)?),
            Structure::AsText => success(answer.quoted.clone(), Value::String(answer.text.clone())),
        })
    }
}

/// No structure is `null`: it stands for the text. Nor is one a string: it stands for itself, and the
/// text is quoted already.
const AS_TEXT: Value = Value::Null;

/// An answer that is given again and again, in both ways it stands in a message.
#[derive(Debug)]
pub(crate) struct Written {
    text: String,
    quoted: String,
}

impl Written {
    /// An answer as it is from now on.
    pub(super) fn new<T: Serialize>(answer: &T) -> serde_json::Result<Self> {
        let text = serde_json::to_string(answer)?;
        let mut line = Vec::new();
        quoted(&text, &mut line);
        let quoted = String::from_utf8(line).map_err(serde_json::Error::custom)?;
        Ok(Written { text, quoted })
    }
}

fn success(text: String, structure: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structure);
    result
}

/// What is said to a client and heard from it, a message a line.
pub(super) struct Lines<R, W> {
    heard: Heard<R>,
    said: Arc<Mutex<Said<W>>>,
    /// Answers to what could not be read, until they are said.
    replies: Vec<u8>,
    /// Such an answer is perhaps not written yet.
    is_saying: bool,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        Lines {
            heard: Heard::new(reader),
            said: Arc::new(Mutex::new(Said {
                writer,
                line: Vec::new(),
                written: 0,
            })),
            replies: Vec::new(),
            is_saying: false,
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let said = Arc::clone(&self.said);
        async move {
            let mut said = said.lock().await;
            write(message, &mut said.line)?;
            said.rest().await
        }
    }

    /// May be given up at any `await` and called again: nothing that was heard or is to be said is
    /// lost.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.is_saying {
                let mut said = self.said.lock().await;
                said.line.append(&mut self.replies);
                said.rest().await.ok()?;
                self.is_saying = false;
            }
            self.heard.line().await?;
            match self.heard.message() {
                Message::Known(message) => return Some(*message),
                Message::Nothing => {}
                Message::Unreadable(reply) => {
                    self.replies = format!("{reply}\n").into_bytes();
                    self.is_saying = true;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}

/// What is being said.
struct Said<W> {
    writer: W,
    /// Lines, of which so much is written. What a sender that gave up has left is written by the
    /// next one.
    line: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> Said<W> {
    async fn rest(&mut self) -> io::Result<()> {
        while self.written < self.line.len() {
            match self.writer.write(&self.line[self.written..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => self.written += written,
            }
        }
        self.line.clear();
        self.line.shrink_to(KEPT);
        self.written = 0;
        self.writer.flush().await
    }
}

/// Adds a message to the lines to write.
fn write(message: TxJsonRpcMessage<RoleServer>, line: &mut Vec<u8>) -> io::Result<()> {
    let (head, mut result) = match message {
        JsonRpcMessage::Response(JsonRpcResponse {
            jsonrpc,
            id,
            result: ServerResult::CallToolResult(result),
        }) if matches!(
            result.structured_content,
            Some(Value::Null | Value::String(_))
        ) =>
        {
            ((jsonrpc, id), result)
        }
        message => {
            serde_json::to_writer(&mut *line, &message)?;
            line.push(b'\n');
            return Ok(());
        }
    };
    let structure = result.structured_content.take();
    line.extend_from_slice(br#"{"jsonrpc":"#);
    serde_json::to_writer(&mut *line, &head.0)?;
    line.extend_from_slice(br#","id":"#);
    serde_json::to_writer(&mut *line, &head.1)?;
    line.extend_from_slice(br#","result":"#);
    let text = match result.content.first_mut() {
        Some(ContentBlock::Text(content)) => std::mem::take(&mut content.text),
        _ => "null".to_owned(),
    };
    let (text, written) = match structure {
        Some(Value::String(structure)) => (structure, Some(text)),
        _ => (text, None),
    };
    let around = serde_json::to_string(&result)?;
    let around = around.strip_suffix('}').unwrap_or(&around);
    match around.split_once(EMPTY) {
        Some((before, after)) => {
            line.extend_from_slice(before.as_bytes());
            line.extend_from_slice(br#""text":""#);
            match written {
                Some(written) => line.extend_from_slice(written.as_bytes()),
                None => quoted(&text, line),
            }
            line.push(b'"');
            line.extend_from_slice(after.as_bytes());
        }
        None => line.extend_from_slice(around.as_bytes()),
    }
    line.extend_from_slice(br#","structuredContent":"#);
    line.extend_from_slice(text.as_bytes());
    line.extend_from_slice(b"}}\n");
    Ok(())
}

/// Where the text goes: the first thing that a result says.
const EMPTY: &str = r#""text":"""#;

/// JSON within a string of JSON. It has no control characters, so only quotes and backslashes get a
/// backslash. They stand so close together that a byte at a time, without a branch, is fastest.
fn quoted(json: &str, line: &mut Vec<u8>) {
    let start = line.len();
    line.resize(start + json.len() * 2, b'\\');
    let mut end = start;
    for &byte in json.as_bytes() {
        end += usize::from(byte == b'"') | usize::from(byte == b'\\');
        line[end] = byte;
        end += 1;
    }
    line.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{ErrorData, RequestId};
    use serde_json::json;

    fn line(message: TxJsonRpcMessage<RoleServer>) -> Value {
        let mut line = Vec::new();
        write(message, &mut line).expect("it can be written");
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&line).expect("it is JSON")
    }

    #[test]
    fn an_answer_reads_the_same_however_its_structure_gets_there() {
        let answer = json!({"a": "\"line\nbreak\" \u{1f600}", "n": [1.5, null, true], "o": {}});
        let id = || RequestId::String("x\",\"y".into());
        let said = |structure: Structure| {
            let result = structure.result(&answer).expect("it can be written");
            line(JsonRpcMessage::response(result.into(), id()))
        };
        let text = serde_json::to_string(&answer).expect("it can be written");
        let written = Written::new(&answer).expect("it can be written");
        let told = said(Structure::AsText);
        assert_eq!(told, said(Structure::Tree));
        for structure in [Structure::AsText, Structure::Tree] {
            let again = structure.again(&written).expect("it is JSON");
            assert_eq!(told, line(JsonRpcMessage::response(again.into(), id())));
        }
        assert_eq!(told["result"]["content"][0]["text"], text);
        assert_eq!(told["result"]["structuredContent"], answer);
        assert_eq!(told["id"], "x\",\"y");
    }

    #[test]
    fn other_messages_are_written_as_they_are() {
        let refused = CallToolResult::error(vec![ContentBlock::text("no")]);
        let told = line(JsonRpcMessage::response(
            refused.into(),
            RequestId::Number(1),
        ));
        assert_eq!(told["result"].get("structuredContent"), None);
        assert_eq!(told["result"]["isError"], true);
        let error = ErrorData::invalid_params("why", None);
        let told = line(JsonRpcMessage::error(error, Some(RequestId::Number(2))));
        assert_eq!(told["error"]["message"], "why");
    }
}
