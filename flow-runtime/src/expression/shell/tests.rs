//! Values in commands, seen by real shells.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use std::process::Command;

use super::super::clock::draw;
use super::super::error::ErrorKind;
use super::super::held::{Held, mark};
use super::{Reader, compose};
use crate::value::Value;

/// A place, and what the shell must then print. `V` stands for the value.
struct Place {
    command: &'static str,
    printed: &'static str,
}

const fn place(command: &'static str, printed: &'static str) -> Place {
    Place { command, printed }
}

/// Places that cost the shell no process.
#[rustfmt::skip]
const PLACES: &[Place] = &[
    place("printf '%s\\0' V", "V"),
    place("printf '%s\\0' \"V\"", "V"),
    place("printf '%s\\0' 'V'", "V"),
    place("printf '%s\\0' a\"b V c\"'d V'eV", "ab V cd VeV"),
    place("printf '%s\\0' --name=V", "--name=V"),
    place("printf '%s\\0' a:V/b", "a:V/b"),
    place("printf '%s\\0' V>&1", "V"),
    place("printf '%s\\0' V;", "V"),
    place("printf '%s\\0' {V", "{V"),
    place("printf '%s\\0' \"$V\"", "$V"),
    place("printf '%s\\0' $V", "$V"),
    place("printf '%s\\0' \"\\V\"", "\\V"),
    place("printf '%s\\0' \"\\\\V\"", "\\V"),
    place("x=V\nprintf '%s\\0' \"$x\"", "V"),
    place("x=\"V\"; printf '%s\\0' \"$x\"", "V"),
    place("x='V' # a comment with ' and \"\nprintf '%s\\0' \"$x\"", "V"),
    place("printf '%s\\0' \\\n  V", "V"),
    place("printf '%s\\0' \\'V\\\"", "'V\""),
    place("f() { printf '%s\\0' \"$1\"; }; f V", "V"),
    place("case V in *) printf '%s\\0' V;; esac", "V"),
    place("case \"$(:)\" in a) :;; *) printf '%s\\0' V;; esac", "V"),
    place("if :; then printf '%s\\0' V; fi", "V"),
    place("{ printf '%s\\0' V; }", "V"),
    place("set -- V \"V\"; printf '%s\\0' \"$2\"", "V"),
    place("printf '%s\\0' ${unset:-a}V\"${unset:-'b'}\"", "aV'b'"),
    place("printf '%s\\0' $((1 << 2))V", "4V"),
    place("A=V eval 'printf \"%s\\0\" \"$A\"'", "V"),
    place("case V in V) printf '%s\\0' V;; *) printf 'not itself\\0';; esac", "V"),
    place("case aV in a\"V\") printf '%s\\0' 'V';; *) printf 'not itself\\0';; esac", "V"),
    place("for x in V; do printf '%s\\0' \"$x\"; done", "V"),
    place("if [ 'V' = \"V\" ]; then printf '%s\\0' V; fi", "V"),
    place("x=V; y=\"V\"; test \"$x\" = \"$y\" && printf '%s\\0' \"$y\"", "V"),
    place("export E=V; printf '%s\\0' \"$E\"", "V"),
    place(": && printf '%s\\0' V || printf 'no\\0'", "V"),
    place("N=/t/; printf '%s\\0' \"$NV\"", "/t/V"),
    place("N=/t/; printf '%s\\0' $NV", "/t/V"),
    place("N=/t/; printf '%s\\0' a$NV\"b\\$NV\"", "a/t/Vb$NV"),
];

/// Places that only bash has.
#[rustfmt::skip]
const BASH: &[Place] = &[
    place("[[ V == V ]] && printf '%s\\0' V", "V"),
    place("[[ aV == a\"V\" ]] && printf '%s\\0' V", "V"),
    place("cat <<< V; printf '\\0'", "V\n"),
    place("cat <<< \"a V\"; printf '\\0'", "a V\n"),
    place("cat <(printf '%s' V); printf '\\0'", "V"),
    place("function f { printf '%s\\0' \"$1\"; }; f V", "V"),
];

/// Places that cost the shell a process each.
#[rustfmt::skip]
const SUBSHELLS: &[Place] = &[
    place("(printf '%s\\0' V)", "V"),
    place("printf '%s\\0' \"$(printf '%s.' V)\"", "V."),
    place("printf '%s\\0' \"$(printf '%s.' \"V\")\"", "V."),
    place("printf '%s\\0' \"$(printf '%s.' 'V')\"", "V."),
    place("printf '%s\\0' \"a $(printf '%s.' \"$(printf '%s.' \"V\")\" ) V\"", "a V.. V"),
    place("printf '%s\\0' \"$( (printf '%s.' V) )\"V", "V.V"),
    place("IFS=; set -f; printf '%s\\0' `printf '%s.' V`", "V."),
    place("IFS=; set -f; printf '%s\\0' a`printf '%s.' \"V\"`", "aV."),
    place("x=`printf '%s.' V`; printf '%s\\0' \"$x\"", "V."),
    place("x=`printf '%s.' 'V'`; printf '%s\\0' \"$x\"", "V."),
    place("x=`printf '%s.' \"V\"`V; printf '%s\\0' \"$x\"", "V.V"),
    place("x=$(# it's a comment\nprintf '%s.' V); printf '%s\\0' \"$x\"", "V."),
    place("cat <<EOF\nV\nEOF\nprintf '\\0'", "V\n"),
    place("cat <<EOF\na V b\n$unset\\$x\nEOF\nprintf '\\0'", "a V b\n$x\n"),
    place("cat <<EOF\n$V \\V EV\nEOF\nprintf '\\0'", "$V \\V EV\n"),
    place("cat <<EOF; printf '%s\\0' V\nVV\nEOF\n", "VV\nV"),
    place("cat <<-EOF\n\tV\n\ta V\n\tEOF\nprintf '\\0'", "V\na V\n"),
    place("cat <<'EOF'\na V $x `\nEOF\nprintf '\\0'", "a V $x `\n"),
    place("cat <<\\EOF\nV\nEOF\nprintf '\\0'", "V\n"),
    place("x=$(cat <<EOF\n\"V\" '.\nEOF\n); printf '%s\\0' \"$x\"", "\"V\" '."),
    place("cat <<A <<B\nV\nA\nVV\nB\nprintf '%s\\0' V", "VV\nV"),
    place("cat <<EOF\n${unset:-x} $(printf y) V\nEOF\nprintf '\\0'", "x y V\n"),
    place("N=/t/\ncat <<EOF\n$NV a$NV\nEOF\nprintf '\\0'", "/t/V a/t/V\n"),
    place("N=/t/; printf '%s\\0' \"$(printf '%s.' \"$NV\")\"", "/t/V."),
    place("N=/t/; x=`printf '%s.' $NV`; printf '%s\\0' \"$x\"", "/t/V."),
];

fn values(count: u64, seed: u64) -> Vec<String> {
    #[rustfmt::skip]
    let pieces = [
        "'", "\"", "$", "`", "\\", "!", "*", "?", "[a-z]", "\n", "\t", "\r", " ", "  ", "-", "--", "~", "#",
        "&", "|", ";", "<", ">", "<<EOF", "(", ")", "{", "}", "{a,b}", "%s", "%", "=", "a", "B", "0", "é", "日本", "😀",
        "$(id)", "`id`", "${HOME}", "$HOME", "$((1+1))", "\nEOF\n", "EOF", "\nEOF", "E", "OF", "A", "\nA\n", "\n\t", "\\\n",
        "\\'", "'\\''", "$'", "\u{1}", "\u{7f}", "\u{81}", "\u{85}", "\u{88}", "\u{1b}", "\u{fdd0}0\u{fdd1}", "${-+}", "if", "done",
        "PATH=x", "^a^b", "!!", "\u{2028}", "\u{feff}",
    ];
    let mut values: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
    values.extend(["", "%self"].map(str::to_owned));
    let mut n = 0;
    let mut next = || {
        n += 1;
        draw(seed, n)
    };
    for _ in 0..count {
        let length = next() % 12;
        let mut value = String::new();
        for _ in 0..length {
            let choice = next();
            if choice % 8 == 0 {
                let letter = char::from_u32((choice >> 8) as u32 % 0x11_0000);
                value.extend(letter.filter(|letter| *letter != '\0'));
            } else {
                value.push_str(pieces[(choice >> 8) as usize % pieces.len()]);
            }
        }
        values.push(value);
    }
    values
}

fn filled(place: &str, value: &str, reader: Reader) -> Result<String, ErrorKind> {
    let rendered = place.replace('V', &mark(0));
    compose(&rendered, &[Held::Value(Value::text(value))], reader).map_err(|error| error.kind)
}

/// Runs many commands in one shell, each of which prints something and a NUL.
fn run(shell: &str, script: &str) -> Vec<u8> {
    let file = std::env::temp_dir().join(format!(
        "flow-quoting-{}-{shell}-{:x}",
        std::process::id(),
        draw(script.len() as u64, 0)
    ));
    std::fs::write(&file, script).unwrap();
    let output = Command::new(shell)
        .arg(&file)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    output.stdout
}

fn check(shell: &str, places: &[Place], values: &[String], reader: Reader) {
    let there = Command::new(shell).arg("-c").arg(":").status();
    assert!(there.is_ok_and(|it| it.success()), "{shell} is needed here");
    for place in places {
        let mut script = String::new();
        let mut expected = Vec::new();
        for value in values {
            match filled(place.command, value, reader) {
                Ok(command) => {
                    expected.push((value, command.clone(), place.printed.replace('V', value)));
                    script.push_str(&command);
                    script.push('\n');
                }
                // Only text that is taken as it is can be impossible to write.
                Err(kind) => {
                    assert_eq!(kind, ErrorKind::Place, "{}", place.command);
                    assert!(
                        value.starts_with(['E', 'A'])
                            || value.contains(
                                "
E"
                            )
                            || value.contains(
                                "
A"
                            ),
                        "{} {value:?}",
                        place.command
                    );
                }
            }
        }
        let output = run(shell, &script);
        let mut printed = output.split(|byte| *byte == 0);
        for (value, command, expected) in expected {
            let printed = String::from_utf8_lossy(printed.next().unwrap_or_default());
            assert_eq!(printed, expected, "{shell}: {value:?} in\n{command}");
        }
    }
}

#[test]
fn sh_sees_exactly_the_value_in_every_place() {
    check("sh", PLACES, &values(400, 1), Reader::Child);
    check("sh", SUBSHELLS, &values(60, 2), Reader::Child);
}

#[test]
fn bash_sees_exactly_the_value_in_every_place() {
    check("bash", PLACES, &values(400, 3), Reader::Child);
    check("bash", SUBSHELLS, &values(60, 4), Reader::Child);
    check("bash", BASH, &values(60, 7), Reader::Child);
}

/// Places that every shell understands alike.
#[rustfmt::skip]
const EVERYWHERE: &[Place] = &[
    place("printf '%s\\0' V", "V"),
    place("printf '%s\\0' \"V\"", "V"),
    place("printf '%s\\0' 'V'", "V"),
    place("printf '%s\\0' a\"b V c\"'d V'eV", "ab V cd VeV"),
    place("printf '%s\\0' --name=V", "--name=V"),
    place("printf '%s\\0' a:V/b; true", "a:V/b"),
];

#[test]
fn the_shell_of_a_terminal_sees_exactly_the_value_whichever_it_is() {
    for shell in ["sh", "bash", "zsh"] {
        check(shell, EVERYWHERE, &values(200, 8), Reader::Terminal);
    }
    // It keeps letters for itself that nobody writes.
    let own = |letter: char| matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}');
    let values: Vec<String> = values(200, 9)
        .into_iter()
        .filter(|it| !it.contains(own))
        .collect();
    check("fish", EVERYWHERE, &values, Reader::Terminal);
}

#[test]
fn no_value_becomes_code_where_the_shells_of_terminals_do_not_agree() {
    let code = ["$(echo code)", "'$(echo code)'", "';echo code;'", "x y"];
    for command in [
        r"echo 'it\'s' V 'x'",
        r"echo 'it\'s V'",
        "echo `echo V`",
        "echo `echo \"V\"` V",
        "true # it's\necho V # it's",
        "true # <<E\necho V\nE",
    ] {
        for value in code {
            let filled = filled(command, value, Reader::Terminal);
            assert_eq!(filled, Err(ErrorKind::Place), "{value:?} in\n{command}");
        }
    }
}

#[test]
fn a_list_becomes_as_many_words_as_it_has_items() {
    for shell in ["sh", "bash"] {
        let mut script = String::new();
        let mut expected = Vec::new();
        for items in values(200, 5).chunks(4) {
            let list = Value::list(items.iter().map(Value::text));
            let rendered = format!("printf '%s\\0' {}", mark(0));
            script.push_str(&compose(&rendered, &[Held::Value(list)], Reader::Child).unwrap());
            script.push('\n');
            expected.extend(
                items
                    .iter()
                    .flat_map(|item| [item.as_bytes(), b"\0"].concat()),
            );
        }
        assert!(run(shell, &script) == expected, "{shell}");
    }
}

#[test]
fn a_very_long_value_survives() {
    let value: String = values(20_000, 6).concat();
    assert!(value.len() > 150_000);
    for shell in ["sh", "bash"] {
        for place in [
            "printf '%s\\0' V",
            "printf '%s\\0' \"V\"",
            "cat <<EOF_\nV\nEOF_\n",
        ] {
            let printed = run(shell, &filled(place, &value, Reader::Child).unwrap());
            let end = &printed[printed.len() - 1..];
            assert!(end == b"\0" || end == b"\n");
            let printed = &printed[..printed.len() - 1];
            let differs = printed.iter().zip(value.bytes()).position(|(a, b)| *a != b);
            let differs = differs.unwrap_or(printed.len().min(value.len()));
            let shown = |bytes: &[u8]| {
                let end = bytes.len().min(differs + 20);
                String::from_utf8_lossy(&bytes[differs.saturating_sub(20).min(end)..end])
                    .into_owned()
            };
            assert_eq!(shown(printed), shown(value.as_bytes()), "{shell} {place}");
            assert_eq!(printed.len(), value.len(), "{shell} {place}");
        }
    }
}

mod again;
