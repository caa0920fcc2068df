//! Places of a command in which no value can stand.
//!
//! The command is read as a shell would read it, as far as that is certain: from a here-document, a
//! backquote or a statement on, nothing is claimed.

use std::ops::Range;

/// A place that takes no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misplaced {
    /// `# …`.
    Comment,
    /// `$'…'`.
    Ansi,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Parentheses { substitution: bool },
    Arithmetic { substitution: bool },
    Parameter,
    Double,
}

/// Which of some values, in the order they stand, are misplaced.
pub(super) fn misplaced(text: &str, values: &[Range<usize>]) -> Vec<(usize, Misplaced)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut next = 0;
    let mut at = 0;
    // Whether a word may begin here, and with it a comment.
    let mut fresh = true;
    while at < bytes.len() {
        if let Some(value) = values.get(next)
            && at >= value.start
        {
            at = value.end.max(at + 1);
            next += 1;
            fresh = false;
            continue;
        }
        let rest = &bytes[at..];
        let top = open.last().copied();
        let is_command = matches!(top, None | Some(Open::Parentheses { .. }));
        let quoted = top == Some(Open::Double);
        match rest[0] {
            b'`' => return found,
            b'<' if is_command && rest.starts_with(b"<<") && !rest.starts_with(b"<<<") => {
                return found;
            }
            b'{' if rest.starts_with(b"{%") => return found,
            b'\\' => {
                at += 1;
                fresh = false;
            }
            b'#' if is_command && fresh => {
                let end = rest.iter().position(|byte| *byte == b'\n');
                let end = end.map_or(bytes.len(), |length| at + length);
                while values.get(next).is_some_and(|value| value.start < end) {
                    found.push((next, Misplaced::Comment));
                    next += 1;
                }
                at = end;
                continue;
            }
            b'\'' if !quoted => {
                let close = rest[1..].iter().position(|byte| *byte == b'\'');
                let Some(close) = close else { return found };
                at += 1 + close;
                while values.get(next).is_some_and(|value| value.start < at) {
                    next += 1;
                }
                fresh = false;
            }
            b'"' => {
                match quoted {
                    true => drop(open.pop()),
                    false => open.push(Open::Double),
                }
                fresh = false;
            }
            b'$' if rest.starts_with(b"$'") && !quoted => {
                let mut end = at + 2;
                while end < bytes.len() && bytes[end] != b'\'' {
                    end += 1 + usize::from(bytes[end] == b'\\');
                }
                while values.get(next).is_some_and(|value| value.start < end) {
                    found.push((next, Misplaced::Ansi));
                    next += 1;
                }
                at = end;
                fresh = false;
            }
            b'$' if rest.starts_with(b"$((") => {
                open.push(Open::Arithmetic { substitution: true });
                at += 2;
            }
            b'$' if rest.starts_with(b"$(") => {
                open.push(Open::Parentheses { substitution: true });
                at += 1;
                fresh = true;
            }
            b'$' if rest.starts_with(b"${") && !rest.starts_with(b"${{") => {
                open.push(Open::Parameter);
                at += 1;
            }
            b'}' if top == Some(Open::Parameter) => {
                open.pop();
                fresh = false;
            }
            b'(' if is_command && rest.starts_with(b"((") => {
                open.push(Open::Arithmetic {
                    substitution: false,
                });
                at += 1;
            }
            b'(' if is_command => {
                open.push(Open::Parentheses {
                    substitution: false,
                });
                fresh = true;
            }
            b')' => match top {
                Some(Open::Parentheses { substitution }) => {
                    open.pop();
                    fresh = !substitution;
                }
                Some(Open::Arithmetic { substitution }) if rest.starts_with(b"))") => {
                    open.pop();
                    at += 1;
                    fresh = !substitution;
                }
                _ => fresh = true,
            },
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' => fresh = true,
            _ => fresh = false,
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where values, written as `@`, are misplaced.
    fn places(text: &str) -> Vec<(usize, Misplaced)> {
        let values: Vec<Range<usize>> = text.match_indices('@').map(|(at, _)| at..at + 1).collect();
        misplaced(text, &values)
    }

    #[test]
    fn comments_and_ansi_quotes_take_no_values() {
        assert_eq!(places("make @ # @ it\necho @"), [(1, Misplaced::Comment)]);
        assert_eq!(
            places("# @ @"),
            [(0, Misplaced::Comment), (1, Misplaced::Comment)]
        );
        assert_eq!(places(r"echo $'a\'@b' @"), [(0, Misplaced::Ansi)]);
        assert_eq!(places("(a)# @"), [(0, Misplaced::Comment)]);
        assert_eq!(places("x=$(ls # @\n) @"), [(0, Misplaced::Comment)]);
    }

    #[test]
    fn what_only_looks_like_one_takes_values() {
        for text in [
            "echo @#@ '# @' \"# @\" \"$'@'\" a# @ \\# @",
            "echo $(( 1 ))# @ ${a#@}# @ $(b)# @ ${#@}",
            "cat <<E\n# @\nE\n",
            "echo `# @`",
            "{% if a %}# {% endif %}@",
            "[[ $a =~ ^# ]] && echo '@' \"it's # @\"",
        ] {
            assert_eq!(places(text), [], "{text}");
        }
    }
}
