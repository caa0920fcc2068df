//! Values as real shells write them.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use std::process::{Command, Stdio};

use proptest::prelude::*;
use regex::Regex;

use super::reading::is_essential;
use super::{Scrubbed, Scrubber, mask};

/// What may be left of a value: nothing that tells its letters.
const NOISE: &str = r#"[\x00-\x20\x7f-\x{9f}'"\\$]|\\[ntrabfveE]|\\(?:[0-7]{3}|[xX][0-9a-fA-F]{2}|M-(?:\^|\\C-|\\)?.)+|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\c.|\\C-.?|\^[@-_?]?"#;

/// The ways of a shell: its program, what it does for each variable, and how what it prints begins and ends.
/// What is printed is ended by a character that no value has.
struct Ways {
    shell: &'static [&'static str],
    each: &'static [(&'static str, &'static str, &'static str)],
    /// What prints all variables, and what is before each.
    all: &'static [(&'static str, &'static str)],
}

const WAYS: [Ways; 4] = [
    Ways {
        shell: &["bash", "--norc", "-c"],
        each: &[
            ("declare -p NAME", "declare -x NAME=", "\n"),
            ("printf %q \"$NAME\"", "", ""),
            ("printf %s \"${NAME@Q}\"", "", ""),
            ("printf %s \"${NAME@A}\"", "declare -x NAME=", ""),
            ("alias a=\"$NAME\"; alias a", "alias a=", "\n"),
            ("(PS4=+; set -x; : \"$NAME\") 2>&1", "\\+: ", "\n"),
            (
                "LC_ALL=C; declare -p NAME; LC_ALL=C.UTF-8",
                "declare -x NAME=",
                "\n",
            ),
        ],
        all: &[("set", ""), ("export -p", "declare -x ")],
    },
    Ways {
        shell: &["zsh", "-f", "-c"],
        each: &[
            ("typeset -p NAME", "export NAME=", "\n"),
            ("print -rn -- ${(q)NAME}", "", ""),
            ("print -rn -- ${(qq)NAME}", "", ""),
            ("print -rn -- ${(qqq)NAME}", "", ""),
            ("print -rn -- ${(qqqq)NAME}", "", ""),
            ("print -rn -- ${(q-)NAME}", "", ""),
            ("print -rn -- ${(q+)NAME}", "", ""),
            ("print -rn -- ${(V)NAME}", "", ""),
            ("alias a=$NAME; alias a", "a=", "\n"),
            ("(PS4=+; set -x; : $NAME) 2>&1", "\\+: ", "\n"),
            (
                "LC_ALL=C; typeset -p NAME; LC_ALL=C.UTF-8",
                "export NAME=",
                "\n",
            ),
        ],
        all: &[("set", ""), ("export -p", "export ")],
    },
    Ways {
        shell: &["dash", "-c"],
        each: &[
            ("alias a=\"$NAME\"; alias a", "a=", "\n"),
            ("(PS4=+; set -x; : \"$NAME\") 2>&1", "\\+: ", "\n"),
        ],
        all: &[("set", ""), ("export -p", "export ")],
    },
    Ways {
        shell: &["fish", "--no-config", "-c"],
        each: &[
            ("string escape -- $NAME", "", "\n"),
            ("string escape -n -- $NAME", "", "\n"),
            (
                "set -S NAME",
                "\\$NAME: set in global scope, exported, with 1 elements\n\\$NAME\\[1\\]: \\|",
                "\\|\n\\$NAME: originally inherited as \\|(?:MASKED)+\\|\n",
            ),
            ("set | string match 'NAME *'", "NAME ", "(?:…|\\.\\.\\.)?\n"),
            (
                "set | string match -r '^NAME .*'",
                "NAME ",
                "(?:…|\\.\\.\\.)?\n",
            ),
        ],
        all: &[],
    },
];

fn name(number: usize) -> String {
    format!("VAR{number}X")
}

/// What a shell prints.
fn printed(shell: &[&str], script: &str, values: &[String]) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", home.path()).env("LC_ALL", "C.UTF-8");
    command.envs(
        values
            .iter()
            .enumerate()
            .map(|(number, value)| (name(number), value)),
    );
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Checks that no shell writes any of some values so that it is seen.
fn check(values: &[String]) {
    let mut scrubber = Scrubber::default();
    for (number, value) in values.iter().enumerate() {
        scrubber.add("r-1", &format!("s{number}"), value);
    }
    let seen = |text: &str| match scrubber.text(text) {
        Some(text) => mask(&text).into_owned(),
        None => text.to_owned(),
    };
    // A backslash at the end of a value may be taken for that of an escape after it.
    let masked = format!(r"{NOISE}|\[secret s\d+(?:\][nt]?)?");
    let pattern = |before: &str, after: &str, number: usize| {
        // A blank that a value begins with may be taken for the one before it.
        let before = match before.strip_suffix(' ') {
            Some(before) => format!("{before} ?"),
            None => before.to_owned(),
        };
        let text = format!("(?s){before}(?:{masked})*{}", after.replace('\n', "\n?"));
        let text = text
            .replace("NAME", &name(number))
            .replace("MASKED", &masked);
        Regex::new(&text).unwrap()
    };
    for ways in &WAYS {
        let mut script = String::new();
        for number in 0..values.len() {
            for (way, ..) in ways.each {
                script.push_str(&way.replace("NAME", &name(number)));
                script.push_str("; printf '\\036'; ");
            }
        }
        let all = printed(ways.shell, &script, values);
        let mut records = all.split('\u{1e}');
        for (number, value) in values.iter().enumerate() {
            for (way, before, after) in ways.each {
                let record = records.next().unwrap();
                let shown = seen(record);
                let wanted = pattern(&format!("^{before}"), &format!("{after}$"), number);
                assert!(
                    wanted.is_match(&shown),
                    "{} {way}: {value:?} is written {record:?} and seen as {shown:?}",
                    ways.shell[0]
                );
            }
        }
        for (way, before) in ways.all {
            let all = printed(ways.shell, way, values);
            let shown = seen(&all);
            for (number, value) in values.iter().enumerate() {
                let wanted = pattern("[ \n\\]]NAME=", "", number);
                // A value that ends like an escape may be taken to end with the next line's first letter.
                let next = format!(r"\n(?:{before}[A-Z_a-z]|$)|\][a-z -]*VAR|\]$");
                let wanted = format!("{wanted}(?:{next})");
                assert!(
                    Regex::new(&wanted).unwrap().is_match(&shown),
                    "{} {way}: {value:?} is seen in {shown:?}",
                    ways.shell[0]
                );
            }
        }
    }
}

fn secret() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec("[A-Za-z0-9+/=' ]{1,30}", 2..6);
    prop_oneof![
        "[ -~]{4,40}",
        "[a-c'\"\\\\ $\n\t!`*-]{4,30}",
        "[a-z0-9'\"\\\\\n]{8,20}",
        "[\u{1}-\u{1d}\u{20}-\u{7f}]{4,24}",
        "[ -~é-ÿ€😀一-十\n]{6,24}",
        "[ntrex0-7'\\\\\n]{8,24}",
        "[nt'\\\\\n\t]{8,24}",
        lines.prop_map(|lines| lines.join("\n")),
    ]
}

#[test]
fn values_that_have_been_hard_are_masked() {
    let pem =
        "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7bq1\nx9Kd'sd/ab+cdEFGHIJK\nQk==\n-----END KEY-----";
    let values = [
        pem,
        r#"p@$$w0rd!'"\ x"#,
        "it's a plain one 12345",
        "a$b*",
        "pw'1",
        "a\nnb\\nc\n\\n'n",
        "ab\u{1}cd\u{1b}[31mef\u{7f}gh",
    ];
    check(&values.map(str::to_owned));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_without_a_value_stays_as_it_is(
        values in prop::collection::vec(secret(), 6),
        words in prop::collection::vec(prop_oneof!["[ -~]{1,12}", "(error|warning): [a-z]{3,9}", "\\PC{0,4}", Just("\n".to_owned()), Just("…".to_owned())], 0..60),
    ) {
        // What is not in the text with everything but letters taken out is not in it.
        let letters = |text: &str| text.chars().filter(|it| it.is_alphanumeric()).collect::<String>();
        let text = words.join(" ");
        let all = letters(&text);
        let mut scrubber = Scrubber::default();
        for value in values {
            let parts = value.lines().chain([value.as_str()]).map(letters);
            if parts.into_iter().all(|it| it.len() >= 4 && !all.contains(&it[..it.floor_char_boundary(4)])) {
                scrubber.add("r-1", "token", &value);
            }
        }
        prop_assert_eq!(scrubber.text(&text), None);
    }

    #[test]
    fn a_stream_hides_what_a_text_hides(value in secret(), at in prop::collection::vec(1_usize..9, 1..20)) {
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "token", &value);
        let escaped = value.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
        let text = format!("<>{value}<>$'{escaped}'<>");
        let mut shown = Vec::new();
        let mut give = |piece: Scrubbed<'_>| match piece {
            Scrubbed::Bytes(bytes) => shown.extend_from_slice(bytes),
            Scrubbed::Secret(_, mask) => shown.extend_from_slice(mask.as_bytes()),
        };
        let mut stream = scrubber.stream();
        let mut rest = text.as_bytes();
        for length in at.into_iter().cycle() {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            stream.push(piece, &mut give);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        stream.end(&mut give);
        let shown = String::from_utf8_lossy(&shown).into_owned();
        let wanted = mask(&scrubber.text(&text).unwrap_or_default()).into_owned();
        // Quotes before a value may be gone before it is known.
        let letters = |text: &str| {
            let letters = text.chars().filter(|it| is_essential(*it) && !matches!(it, '$' | 'n'));
            letters.collect::<String>()
        };
        prop_assert_eq!(letters(&shown), letters(&wanted));
    }
}

proptest! {
    // Each starts shells for many values.
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_shell_writes_a_value_so_that_it_is_seen(values in prop::collection::vec(secret(), 24)) {
        check(&values);
    }
}
