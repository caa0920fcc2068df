//! Places in which shells read a value a second time, after its quotes are gone.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::super::error::ErrorKind;
use super::super::super::held::{Held, mark};
use super::super::{Reader, compose};
use super::filled;
use crate::value::Value;

/// Values that some shell runs somewhere: `FILE` is there when it did.
const CODE: &[&str] = &[
    "a[$(touch FILE)]",
    "HOME[$(touch FILE)]",
    "HOME[`touch FILE`]",
    "a[$(touch FILE)]=1",
    "x=1",
    "PATH",
    "1+1",
    "$(touch FILE)",
    "`touch FILE`",
    "-1",
    "5",
    "0x10",
    " 5 ",
    "5;touch FILE",
    "-va[$(touch FILE)]",
    "-pa[$(touch FILE)]",
    "-vHOME[$(touch FILE)]",
    "-Ctouch FILE;:",
    "-v",
    "-gt",
    "($(touch FILE))",
    "([$(touch FILE)]=1)",
    "e:touch FILE:",
    "(e:touch FILE:)",
    "%d",
    "]$(touch FILE)[",
    "",
];

/// Places that are computed, with quotes or without: they take whole numbers.
#[rustfmt::skip]
const COMPUTED: &[&str] = &[
    "[[ V -gt 3 ]]", "[[ 3 -eq V ]]", "[[ \"V\" -ne 3 ]]", "[[ 3 -lt 'V' ]]", "[[ 1V -le 3 ]]", "[[ 3 -ge x\"V\" ]]",
    "[[ ! V -gt 3 ]]", "[[ -n x && V -gt 3 ]]", "[[ ( V -gt 3 ) || 3 -gt V ]]", "[[ \"V && 1\" -gt 3 ]]",
    "[[ V$(echo 1 2) -gt 3 ]]", "[[ ${u:-V} -gt 3 ]]", "[[ \"${u:-V}\" -gt 3 ]]", "if [[ V -gt 3 ]]; then :; fi",
    "[[ V\\\n -gt 3 ]]", "[[ V\n-gt 3 ]]", "! [[ V -eq 0 ]]", "while [[ V -gt 3 ]]; do break; done",
    "a[V]=1", "a[V]+=1", "a[1+V]=1", "a[\"V\"]=1", "a=([V]=1)", "a=(x [V]=1)", "b=2 a[V]=1", "declare a[V]=1",
    "declare \"a[V]=1\"", "declare -A h; h[V]=1", "declare -A h; : ${h[V]}", "unset \"h[V]\"", "unset h[V]",
    "read a[V]", "read \"a[V]\"", "printf -v a[V] x", "printf -v \"a[V]\" x", "[ -v a[V] ]", "[[ -v a[V] ]]",
    ": ${a[V]}", ": \"${a[V]}\"", ": ${#a[V]}", ": ${a[1-V]}", ": ${a[V]:-1}",
    "x=abc; : ${x:V}", "x=abc; : ${x:V:1}", "x=abc; : ${x:0:V}", "x=abc; : \"${x: -1:V}\"", "x=abc; : ${x:\"V\"}",
    "let V", "let \"V\"", "let x=V", "let 'x = V'", "let a=1 V", "command let V", "{ let V; }", "f() { let V; }; f",
    "function f { let V; }; f", "case a in a) let V;; esac", "case a in (a) let V;; esac", "x=$(let V)", "(let V)",
    "for i in 1; do let V; done", "2>/dev/null let V", "let V >/dev/null", "\\let V", "'let' V", "y=1 let V",
    "declare -i x=V", "declare -i x; x=V", "declare -i x; x+=V", "declare -ir x=V", "declare -r -i x=\"V\"",
    "typeset -i x=V", "f() { local -i x=V; }; f", "readonly -i x=V", "export -i x=V", "typeset -F x=V",
    "typeset -i 16 x=V", "integer x=V", "float x=V", "integer x; x=V",
    "RANDOM=V", "OPTIND=V", "HISTCMD=V", "SRANDOM=V", "SECONDS=V",
    ": $[V]", ": $[1+V]", ": \"$[V]\"", ": $[a[V]]", "(( V ))", "(( x = V ))", ": $((V))", "for ((i=V;i<1;i++)); do break; done",
    "x=abc; : ${x:-${x:V}}", "time let V", "if let V; then :; fi", "true && let V", "true | let V", "true; { :; }; let V", ": \"$(let V)\"",
    "[[ a == b ]] || let V", "[[ -n x ]] && [[ V -gt 3 ]]", "[[ -f x || V -gt 3 ]]", "[[ $(echo a) == a && V -gt 3 ]]",
    "[[ a == \"]]\" || V -gt 3 ]]", "{ [[ V -gt 1 ]]; }", "f () { [[ V -gt 1 ]]; }; f", "case x in x) [[ V -gt 1 ]];; esac", "(( 1 )) && let V",
    "until [[ V -gt 3 ]]; do break; done", "declare -i x y=V", "declare -i x=1 y; y=V", "a[1]=2 b[V]=3", "a=(1 2) b[V]=3",
    "a=(1 2); b[V]=1", "a+=([V]=x)", "declare -a a=([V]=x)", "f() { local a=([V]=1); }; f", "x=\"${a[V]}\"", ": \"${a[@]:V:1}\"",
    "set -- a b; : ${@:V}", "set -- a b; : ${*:1:V}", "x=abc; : ${x:$((V))}", "x=abc; : ${x:(V)}", "x=abc; : ${x: V}",
    "x=abc; : ${x:V}${x:V}", "let 'V' \"V\" V", "let x=1 y=\"1 + V\"", "[[ 1 -lt 2 ]]; a[V]=1", "f() { declare -i n=V; }; f; f",
    "for a in 1 2\ndo\nlet V\ndone", "let \\\n V", "# a comment\nlet V", "cat <<E; let V\nx\nE", "cat <<E\nx\nE\nlet V", ">/dev/null let V",
    "cat <<E\n$((V))\nE",
];

/// Places of names: they take letters, digits and `_`.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "[[ -v V ]]", "[ -v V ]", "test -v V", "[ 1 -eq 1 -a -v V ]", "[ \"V\" V ]", "test V V",
    "declare V", "declare V=1", "declare -a V", "declare -a V=1", "typeset V=1", "f() { local V; }; f", "f() { local V=1; }; f",
    "declare -n r=V; : $r", "declare -n r=V; r=1", "typeset -n r=V; r=1", "declare -i V", "declare x V", "declare -- V",
    "printf -v V x", "printf -v \"V\" x", "printf -vV x", "command printf -v V x", "builtin printf -v V x", "printf -v x\"V\" x",
    "read V", "read -r V", "read -r -- V", "read x V", "echo x y | read x V", "while read V; do break; done <<< x", "read -a V",
    "unset V", "unset -v V", "unset x V", "wait -n -p V", ": & wait -p V $!",
];

/// Places that the shells of terminals read a second time in ways of their own.
#[rustfmt::skip]
const TYPED: &[&str] = &[
    "export V", "export V=1", "readonly V=1", "export x V", "[ -t V ]", "[[ -t V ]]", "test -t V", "exit V", "return V",
    "f() { return V; }; f", "shift V", "for i in 1; do break V; done", "for i in 1; do continue V; done", "logout V", "repeat V; do :; done",
    "printf %d V", "printf '%s %d' V 1", "printf '%*s' V x", "printf '%.*f' 1 V", "printf V V", "printf \"V\" x", "print V", "print -n V",
    "print -v V x", "print -f %d V", "getopts a V -a", "set -A V x", "vared V", "private V", "getln V",
    "HISTSIZE=V", "COLUMNS=V", "LINES=V", "UID=V", "FUNCNEST=V", "MAILCHECK=V", "KEYTIMEOUT=V", "LISTMAX=V", "ERRNO=V",
    ": $a[V]", ": \"$a[V]\"", ": $a[\"V\"]", ": $a['V']", ": $a[1+V]", ": $path[V]", ": $@[V]", ": $#[V]", ": $+a[V]", ": $a[$i+V]",
    "echo *(V)", "echo /tmp(V)", "echo /tmp(N\"V\")", "read -t V x", "read -n V x", "read -u V x",
];

/// Places that take every value, as it is.
#[rustfmt::skip]
const FREE: &[&str] = &[
    "[ V -gt 3 ]", "[ 3 -eq V ]", "[ \"V\" -gt 3 ]", "test V -gt 3", "test 3 -lt \"V\"", "[ V = x ]", "[ x != V ]", "[ -n V ]",
    "[ -z \"V\" ]", "[ -e V ]", "x=V; [ \"$x\" -gt 3 ]", "x=V", "x=V true", "x=V; y=\"V\"", "export x=V", "readonly x=V",
    "case V in V) ;; esac", "printf '%s' V", "printf -- '%s' V", "printf '%s%%' V", "unset -f V", "for x in V; do :; done",
    "read -p V x", "echo V", "cat <V", ": 2>V", "kill -0 V", "cd V", "umask V", "hash V", "type V", "command -v V", "echo x[V]", "set -- V",
];
#[rustfmt::skip]
const FREE_IN_BASH: &[&str] = &[
    "[[ V == x ]]", "[[ x == V ]]", "[[ V = \"V\" ]]", "[[ x =~ V ]]", "[[ x < V ]]", "[[ V -nt x ]]", "[[ -n V ]]", "[[ -z V ]]", "[[ -e V ]]",
    "[[ V ]]", "[[ V == x && 4 -gt 3 ]]", "[[ 4 -gt 3 && V == x ]]", "[[ 4 -gt $(echo V | wc -c) || V != 3 ]]", "[[ $(echo V -gt 3) ]]",
    "declare x=V", "typeset x=V", "f() { local x=V; }; f", "a=(V)", "a+=(V x)", "a=([0]=V)", "declare -a a=(V)", "cat <<< V",
];
/// Places that take some values.
#[rustfmt::skip]
const OTHER: &[&str] = &[
    ": >&V", ": >& V", ": >&\"V\"", ": 1>&V", ": 2>&V", "declare -a a=V", "declare -A a=V", "declare -a a; declare a=V", "typeset -a x=\"V\"",
    "f() { local -a x=V; }; f", "readonly -a x=V", "export -a x=V", "declare -a x=\"(V)\"", "printf V x", "printf \"V\" x", "wait V", ": & wait -n V",
    "mapfile V", "mapfile -c 1 V <<< x", "declare -V x", "declare -V x=V", "read -V x", "printf -V x", "[[ 3 V V ]]", "[[ V V 3 ]]", "[[ V V ]]",
    "cat <<E\n${a[V]}\nE", "x=abc; cat <<E\n${x:V}\nE", "cat <<E\n$[V]\nE", "cat <<E\n$[a[V]]\nE", "cat <<E\n$a[V]\nE", "cat <<E\nV\nE", "cat <<'E'\n$[V]\nE",
    "cat <<< $[V]", "cat <<< \"${a[V]}\"", "`let V`", "x=`[[ V -gt 3 ]]`", "echo \"`let V`\"", "[[ x == (a|b) && V -gt 3 ]]", "x=V[V]", "V+=1", "V; V",
    ": ${x:-V}", ": ${x/V/a}", ": ${!V}", ": ${!a[V]}", ": ${V}", ": ${x@V}", "V=1", "xV=1", "V[1]=1", "{V,b}", ": {1..V}", ": *V", ": ~V", ": \"V\"*",
];

/// What a shell runs of values in commands, each in a shell of its own.
fn run_all(shell: &[&str], commands: &[(String, String)]) -> Vec<String> {
    let folder = folder(shell);
    let mut driver = String::new();
    for (number, (_, command)) in commands.iter().enumerate() {
        let command = command.replace("FILE", &format!("hit-{number}"));
        fs::write(folder.join(format!("{number}.cmd")), command).unwrap();
        driver.push_str(&match shell[0] {
            "fish" => format!("source ./{number}.cmd\n"),
            _ => format!("( . ./{number}.cmd )\n"),
        });
    }
    fs::write(folder.join("driver"), driver).unwrap();
    let status = Command::new(shell[0])
        .args(&shell[1..])
        .arg("driver")
        .current_dir(&folder)
        .env("HOME", &folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "{} is needed here", shell[0]);
    let hit = |number: &usize| folder.join(format!("hit-{number}")).exists();
    let hits = (0..commands.len()).filter(hit);
    let hits = hits.map(|number| {
        format!(
            "{shell:?} runs {:?} in\n{}",
            commands[number].0, commands[number].1
        )
    });
    let hits = hits.collect();
    fs::remove_dir_all(&folder).unwrap();
    hits
}

fn folder(shell: &[&str]) -> PathBuf {
    let name = format!("flow-again-{}-{}", std::process::id(), shell.concat());
    let folder = std::env::temp_dir().join(format!("{name}-{:?}", std::thread::current().id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn composed(places: &[&[&str]], reader: Reader) -> Vec<(String, String)> {
    let mut composed = Vec::new();
    for place in places.iter().copied().flatten() {
        for value in CODE {
            match filled(place, value, reader) {
                Ok(command) => composed.push(((*value).to_owned(), command)),
                Err(kind) => assert_eq!(kind, ErrorKind::Place, "{value:?} in\n{place}"),
            }
        }
        for value in &CODE[..5] {
            let rendered = place.replace('V', &mark(0));
            let list = ["-v", value, "touch FILE", value].map(Value::text);
            let list = Held::Value(Value::list(list));
            if let Ok(command) = compose(&rendered, &[list], reader) {
                composed.push((format!("a list with {value}"), command));
            }
        }
    }
    composed
}

#[test]
fn no_value_becomes_code_when_a_shell_reads_it_again() {
    let places = [COMPUTED, NAMES, FREE, FREE_IN_BASH, OTHER];
    let commands = composed(&places, Reader::Child);
    assert!(commands.len() > 2000, "{}", commands.len());
    for shell in [&["bash"] as &[&str], &["bash", "--posix"], &["dash"]] {
        assert_eq!(run_all(shell, &commands).join("\n"), "");
    }
}

#[test]
fn no_value_becomes_code_when_the_shell_of_a_terminal_reads_it_again() {
    let places = [COMPUTED, NAMES, TYPED, FREE, FREE_IN_BASH, OTHER];
    let commands = composed(&places, Reader::Terminal);
    assert!(commands.len() > 2000, "{}", commands.len());
    for shell in [&["bash"] as &[&str], &["zsh", "-f"], &["dash"]] {
        assert_eq!(run_all(shell, &commands).join("\n"), "");
    }
    let ends = |command: &str| ["exit", "logout"].iter().any(|it| command.starts_with(it));
    let commands: Vec<_> = commands.into_iter().filter(|(_, it)| !ends(it)).collect();
    let hits = run_all(&["fish", "--no-config"], &commands);
    assert_eq!(hits.join("\n"), "");
}

#[test]
fn a_run_of_what_a_value_says_would_be_seen() {
    let code = |command: &str| (String::new(), command.to_owned());
    let commands = [code("true"), code("eval 'touch FILE'")];
    for shell in [
        &["bash"] as &[&str],
        &["bash", "--posix"],
        &["dash"],
        &["zsh", "-f"],
        &["fish", "--no-config"],
    ] {
        assert_eq!(run_all(shell, &commands).len(), 1, "{shell:?}");
    }
    let computed = [
        code("[[ 'HOME[$(touch FILE)]' -gt 3 ]]"),
        code("unset 'HOME[$(touch FILE)]'"),
    ];
    for shell in [&["bash"] as &[&str], &["zsh", "-f"]] {
        assert_eq!(run_all(shell, &computed).len(), 2, "{shell:?}");
    }
}

#[test]
fn what_can_be_no_code_keeps_its_places() {
    for reader in [Reader::Child, Reader::Terminal] {
        for place in COMPUTED {
            assert!(filled(place, "5", reader).is_ok(), "{place}");
        }
        for place in NAMES {
            assert!(filled(place, "total_2", reader).is_ok(), "{place}");
        }
    }
    for place in FREE.iter().chain(FREE_IN_BASH) {
        for value in CODE {
            assert!(
                filled(place, value, Reader::Child).is_ok(),
                "{value:?} in {place}"
            );
        }
    }
    assert_eq!(
        filled("x=abc; echo ${x:V}", "-1", Reader::Child),
        Ok("x=abc; echo ${x: -1}".to_owned())
    );
    assert_eq!(
        filled("echo $((3-V))", "-1", Reader::Child),
        Ok("echo $((3- -1))".to_owned())
    );
}

#[test]
fn a_place_that_is_read_again_says_the_way_out() {
    let said = |command: &str| {
        let rendered = command.replace('V', &mark(0));
        let value = Value::text("a[$(id)]");
        compose(&rendered, &[Held::Value(value)], Reader::Child)
            .unwrap_err()
            .to_string()
    };
    let message = said("[[ V -gt 3 ]]");
    assert!(message.contains("compare with `[ … ]`"), "{message}");
    let message = said("read V");
    assert!(message.contains("the name of a variable"), "{message}");
}
