//! Messages from a client, a line each. What cannot be read is answered: whoever waits for an answer
//! gets one.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorData, JsonObject, JsonRpcMessage,
    JsonRpcVersion2_0, RequestId, RequestMetaObject,
};
use rmcp::serde::Deserialize;
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Bytes of the longest message, as over HTTP.
pub(super) const LONGEST: usize = 16 << 20;
/// Room that is kept for the next line.
const KEPT: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the client says.
pub(super) struct Heard<R> {
    reader: BufReader<R>,
    /// A line, or as much of it as was heard.
    line: Vec<u8>,
    /// It is whole.
    is_whole: bool,
    /// It is too long: the rest of it is passed over, but for whose it is.
    passed: Option<Passed>,
}

/// A line that was heard.
pub(super) enum Message {
    /// A message.
    Known(Box<RxJsonRpcMessage<RoleServer>>),
    /// Nothing that has an answer.
    Nothing,
    /// What cannot be read, and the answer to it.
    Unreadable(Value),
}

/// What there is of a message that is no message.
#[derive(Default, Deserialize)]
#[serde(crate = "rmcp::serde", default)]
struct Head {
    id: Option<RequestId>,
    method: Option<String>,
}

/// The call of a tool, in the form that nearly every message has.
#[derive(Deserialize)]
#[serde(crate = "rmcp::serde", deny_unknown_fields)]
struct ToolCall<'a> {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    method: &'a str,
    params: ToolCallParams,
}

#[derive(Deserialize)]
#[serde(crate = "rmcp::serde", deny_unknown_fields)]
struct ToolCallParams {
    name: String,
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta")]
    meta: Option<RequestMetaObject>,
}

impl ToolCall<'_> {
    fn into_message(self) -> RxJsonRpcMessage<RoleServer> {
        let mut params = CallToolRequestParams::new(self.params.name);
        params.arguments = self.params.arguments;
        let mut request = CallToolRequest::new(params);
        if let Some(meta) = self.params.meta {
            request.extensions.insert(meta);
        }
        JsonRpcMessage::request(ClientRequest::CallToolRequest(request), self.id)
    }
}

impl<R: AsyncRead + Unpin> Heard<R> {
    pub(super) fn new(reader: R) -> Self {
        Heard {
            reader: BufReader::new(reader),
            line: Vec::new(),
            is_whole: false,
            passed: None,
        }
    }

    /// Hears a whole line; `None` when the client has said everything.
    pub(super) async fn line(&mut self) -> Option<()> {
        while !self.is_whole {
            let available = self.reader.fill_buf().await.ok()?;
            if available.is_empty() {
                // The last line need not end.
                if self.line.is_empty() && self.passed.is_none() {
                    return None;
                }
                self.is_whole = true;
                break;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.passed.is_none() && self.line.len() + taken > LONGEST {
                let mut passed = Passed::default();
                passed.hear(&self.line);
                self.passed = Some(passed);
                self.line.clear();
            }
            match &mut self.passed {
                Some(passed) => passed.hear(&available[..taken]),
                None => self.line.extend_from_slice(&available[..taken]),
            }
            self.is_whole = end.is_some();
            self.reader.consume(taken);
        }
        Some(())
    }

    /// What the line says that was heard; the next one is another.
    pub(super) fn message(&mut self) -> Message {
        let message = match self.passed.take() {
            Some(passed) => {
                let why = format!("the message is longer than {LONGEST} bytes");
                refusal(ErrorData::parse_error(why, None), passed.request())
            }
            None => read(&self.line),
        };
        self.line.clear();
        self.line.shrink_to(KEPT);
        self.is_whole = false;
        message
    }
}

/// What is heard of a message that is passed over: which request it is.
#[derive(Default)]
struct Passed {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The text of the outermost object that is being heard, as much as matters.
    text: Vec<u8>,
    /// The key that the value being heard belongs to.
    key: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

impl Passed {
    /// Bytes of keys and ids that are kept.
    const MOST: usize = 256;

    fn hear(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hear_byte(*byte);
        }
    }

    fn hear_byte(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            self.keep(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b':' if self.depth == 1 => self.key = std::mem::take(&mut self.text),
            b',' if self.depth == 1 => self.end_value(),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.text.len() < Self::MOST {
            self.text.push(byte);
        }
    }

    fn end_value(&mut self) {
        let value = std::mem::take(&mut self.text);
        match &*self.key {
            b"\"id\"" => self.id = value,
            b"\"method\"" => self.has_method = true,
            _ => {}
        }
        self.key.clear();
    }

    /// The request that waits for an answer.
    fn request(&self) -> Option<RequestId> {
        let id = serde_json::from_slice(&self.id).ok();
        id.filter(|_| self.has_method)
    }
}

fn read(line: &[u8]) -> Message {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Message::Nothing;
    }
    // Reading any message tries everything that it could be, one after another.
    if let Ok(call) = serde_json::from_slice::<ToolCall<'_>>(line)
        && call.method == "tools/call"
    {
        return Message::Known(Box::new(call.into_message()));
    }
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Message::Known(Box::new(message)),
        Err(error) => error,
    };
    // What is not looked at may nest in any depth.
    let head = serde_json::from_slice::<Head>(line).unwrap_or_default();
    let is_readable = error.is_data();
    match (head.method, head.id) {
        // Nobody waits for an answer to a notification.
        (Some(_), None) if is_readable => Message::Nothing,
        (method, id) => {
            // An id without a method is one of ours.
            let id = id.filter(|_| method.is_some());
            let why = format!("the message cannot be read: {error}");
            let error = match is_readable {
                true => ErrorData::invalid_request(why, None),
                false => ErrorData::parse_error(why, None),
            };
            refusal(error, id)
        }
    }
}

/// The answer to a message that is none.
pub(super) fn unreadable(said: &[u8]) -> Value {
    match read(said) {
        Message::Unreadable(reply) => reply,
        Message::Known(_) | Message::Nothing => {
            let error = ErrorData::invalid_request("this is not a message", None);
            json!({"jsonrpc": "2.0", "id": null, "error": error})
        }
    }
}

fn refusal(error: ErrorData, id: Option<RequestId>) -> Message {
    Message::Unreadable(json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(said: &[u8]) -> Vec<Value> {
        let mut heard = Heard::new(said);
        let mut told = Vec::new();
        while heard.line().await.is_some() {
            told.push(match heard.message() {
                Message::Known(message) => serde_json::to_value(message).expect("it is JSON"),
                Message::Nothing => Value::Null,
                Message::Unreadable(reply) => {
                    json!([reply["id"], reply["error"]["code"]])
                }
            });
        }
        told
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_answered_and_the_next_message_is_heard() {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let deep = format!("{}1{}", "[".repeat(150), "]".repeat(150));
        let said = [
            "not json".to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"a":{deep}}}}}"#),
            r#"{"jsonrpc":"2.0","id":"x","method":"#.to_owned(),
            String::new(),
            r#"{"id":8,"method":"ping"}"#.to_owned(),
            r#"{"method":"notifications/odd"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":9,"res":1}"#.to_owned(),
            format!("\u{feff}{ping}\r"),
            format!("{ping}"),
        ];
        assert_eq!(
            heard(said.join("\n").as_bytes()).await,
            [
                json!([null, -32700]),
                json!([7, -32700]),
                json!([null, -32700]),
                Value::Null,
                json!([8, -32600]),
                Value::Null,
                json!([null, -32600]),
                ping.clone(),
                ping,
            ]
        );
        assert_eq!(heard(b"half a li").await, [json!([null, -32700])]);
        assert_eq!(heard(b"\n").await, [Value::Null]);
        assert_eq!(heard(b"").await, [] as [Value; 0]);
    }

    #[test]
    fn the_call_of_a_tool_is_read_as_any_other_message() {
        let of = |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let messages = [
            of(json!({"name": "a"})),
            of(json!({"name": "a", "arguments": null, "_meta": null})),
            of(json!({"name": "a", "arguments": {"n": [1, -2.5, 1e300, u64::MAX, "\u{fc}\n"]}})),
            of(json!({"name": "a", "_meta": {"progressToken": "t"}, "arguments": {}})),
            of(json!({"name": "a", "requestState": "s", "inputResponses": {}})),
            of(json!({"name": "a", "task": {}})),
            of(json!({"name": 1})),
            of(json!([])),
            json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call"}),
            json!({"jsonrpc": "1.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "other", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}, "more": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}, "result": 1}),
        ];
        for message in messages {
            let line = message.to_string();
            let any = serde_json::from_str::<RxJsonRpcMessage<RoleServer>>(&line);
            let told = |message: &RxJsonRpcMessage<RoleServer>| {
                let written = serde_json::to_value(message).expect("it is JSON");
                format!("{message:?} {written}")
            };
            let any = any.ok().as_ref().map(told);
            let read = match read(line.as_bytes()) {
                Message::Known(message) => Some(told(&message)),
                Message::Nothing | Message::Unreadable(_) => None,
            };
            assert_eq!(read, any, "{line}");
        }
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_passed_over_and_answered() {
        let mut said = vec![b' '; LONGEST + 3];
        said.extend_from_slice(b"\nnot json\n");
        let told = heard(&said).await;
        assert_eq!(told, [json!([null, -32700]), json!([null, -32700])]);
        // Whoever waits for it is told, wherever its id stands.
        let long = format!("[{{\"id\": 1}}, \"\\\"{}\"]", "x".repeat(LONGEST));
        for (said, id) in [
            (
                format!(r#"{{"id": 7, "method": "m", "params": {long}}}"#),
                json!(7),
            ),
            (
                format!(r#"{{"method": "m", "params": {long}, "id": "a,\"b"}}"#),
                json!("a,\"b"),
            ),
            (format!(r#"{{"id": 7, "result": {long}}}"#), Value::Null),
            (
                format!(r#"{{"params": {{"id": 7, "method": "m", "x": {long}}}}}"#),
                Value::Null,
            ),
        ] {
            assert_eq!(heard(said.as_bytes()).await, [json!([id, -32700])]);
        }
    }
}
