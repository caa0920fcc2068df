//! What keys send, as xterm sends it.

use flow_model::tools::{Key, KeyCode};

/// The bytes of a key press. `application` says that a program asked for the other codes of the
/// arrow keys.
pub(super) fn bytes(key: Key, application: bool) -> Vec<u8> {
    let modifiers = 1 + u8::from(key.shift) + 2 * u8::from(key.alt) + 4 * u8::from(key.ctrl);
    let csi = |last: char| {
        if modifiers == 1 {
            let lead = if application { 'O' } else { '[' };
            format!("\x1b{lead}{last}").into_bytes()
        } else {
            format!("\x1b[1;{modifiers}{last}").into_bytes()
        }
    };
    let tilde = |number: u8| {
        if modifiers == 1 {
            format!("\x1b[{number}~").into_bytes()
        } else {
            format!("\x1b[{number};{modifiers}~").into_bytes()
        }
    };
    let simple = |byte: u8| {
        let mut bytes = Vec::new();
        if key.alt {
            bytes.push(0x1b);
        }
        bytes.push(byte);
        bytes
    };
    match key.code {
        KeyCode::Char(character) => {
            let mut bytes = Vec::new();
            if key.alt {
                bytes.push(0x1b);
            }
            if key.ctrl {
                bytes.push(control(character));
            } else {
                let mut buffer = [0; 4];
                bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
            }
            bytes
        }
        KeyCode::Enter => simple(b'\r'),
        KeyCode::Tab if key.shift => b"\x1b[Z".to_vec(),
        KeyCode::Tab => simple(b'\t'),
        KeyCode::Escape => simple(0x1b),
        KeyCode::Backspace => simple(if key.ctrl { 0x08 } else { 0x7f }),
        KeyCode::Insert => tilde(2),
        KeyCode::Delete => tilde(3),
        KeyCode::PageUp => tilde(5),
        KeyCode::PageDown => tilde(6),
        KeyCode::Up => csi('A'),
        KeyCode::Down => csi('B'),
        KeyCode::Right => csi('C'),
        KeyCode::Left => csi('D'),
        KeyCode::Home => csi('H'),
        KeyCode::End => csi('F'),
        KeyCode::Function(number @ 1..=4) => {
            let last = char::from(b'O' + number);
            if modifiers == 1 {
                format!("\x1bO{last}").into_bytes()
            } else {
                format!("\x1b[1;{modifiers}{last}").into_bytes()
            }
        }
        KeyCode::Function(number) => {
            const CODES: [u8; 8] = [15, 17, 18, 19, 20, 21, 23, 24];
            let index = usize::from(number).saturating_sub(5).min(CODES.len() - 1);
            tilde(CODES[index])
        }
    }
}

/// The control code of a character.
fn control(character: char) -> u8 {
    match character {
        ' ' | '@' | '2' => 0x00,
        '/' | '_' | '7' => 0x1f,
        '?' | '8' => 0x7f,
        '3' => 0x1b,
        '4' => 0x1c,
        '5' => 0x1d,
        '6' => 0x1e,
        other => u8::try_from(other).unwrap_or(b'@').to_ascii_uppercase() & 0x1f,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(name: &str) -> Vec<u8> {
        bytes(name.parse().expect("a key"), false)
    }

    #[test]
    fn keys_send_what_xterm_sends() {
        for (name, expected) in [
            ("enter", &b"\r"[..]),
            ("ctrl-c", b"\x03"),
            ("ctrl-space", b"\x00"),
            ("ctrl-[", b"\x1b"),
            ("alt-f", b"\x1bf"),
            ("shift-tab", b"\x1b[Z"),
            ("up", b"\x1b[A"),
            ("ctrl-right", b"\x1b[1;5C"),
            ("f1", b"\x1bOP"),
            ("f5", b"\x1b[15~"),
            ("f12", b"\x1b[24~"),
            ("shift-f2", b"\x1b[1;2Q"),
            ("delete", b"\x1b[3~"),
            ("backspace", b"\x7f"),
            ("é", "é".as_bytes()),
        ] {
            assert_eq!(sent(name), expected, "{name}");
        }
        assert_eq!(bytes("up".parse().expect("a key"), true), b"\x1bOA");
    }
}
