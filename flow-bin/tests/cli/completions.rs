//! `flow completions`, in the shells that the scripts are for.

use std::path::Path;
use std::process::Command;

use super::Place;

fn place() -> Place {
    let place = Place::with(&[
        (
            ".flow/workflows/hello.yaml",
            "description: Says hello\ninputs: {who: string}\nsteps: [{type: return, value: '{{ inputs.who }}'}]\n",
        ),
        (
            ".flow/workflows/deploy/prod.yaml",
            "steps: [{type: return}]\n",
        ),
        (".flow/workflows/help.yaml", "steps: [{type: return}]\n"),
        (
            ".flow/prompts/review.md",
            "---\narguments: {branch: {required: true}}\n---\n{{ branch }}\n",
        ),
    ]);
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]);
        assert_eq!(script.code, 0, "{}", script.stderr);
        place.file(&format!("flow.{shell}"), &script.stdout);
    }
    place
}

/// What a shell prints, a line each.
fn says(place: &Place, shell: &str, arguments: &[&str]) -> Vec<String> {
    let flow = Path::new(env!("CARGO_BIN_EXE_flow")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(shell)
        .args(arguments)
        .current_dir(place.path(""))
        .env("FLOW_CONFIG_DIR", place.path("config"))
        .env("FLOW_DATA_DIR", place.path("data"))
        .env("HOME", place.path(""))
        .env("PATH", format!("{}:{path}", flow.display()))
        .output()
        .unwrap_or_else(|error| panic!("{shell} is needed: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && told.is_empty(),
        "{shell}: {told}"
    );
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().map(str::to_owned).collect()
}

/// Lines as they are typed, and what completes their last word.
const LINES: [(&str, &[&str]); 9] = [
    ("flow ru", &["run", "runs"]),
    ("flow run hel", &["hello", "help"]),
    ("flow run deploy:p", &["deploy:prod"]),
    ("flow _he", &["_help"]),
    ("flow rev", &["review"]),
    ("flow prompt r", &["review"]),
    ("flow review -p b", &["branch="]),
    ("flow hello --for", &["--format"]),
    ("flow list --source pr", &["project"]),
];

#[test]
fn bash_completes_commands_and_what_can_be_run() {
    // Bash takes words apart at colons; only what follows is completed.
    let script = r#"
        source flow.bash
        compopt() { :; }
        COMP_LINE=$1 COMP_POINT=${#1}
        read -ra COMP_WORDS <<< "${1//:/ : }"
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _flow flow
        printf '%s\n' "${COMPREPLY[@]}""#;
    let place = place();
    for (line, completed) in LINES {
        let said = says(&place, "bash", &["--norc", "-c", script, "bash", line]);
        let completed: Vec<&str> = completed
            .iter()
            .map(|it| it.rsplit(':').next().unwrap())
            .collect();
        assert_eq!(said, completed, "{line}");
    }
}

#[test]
fn zsh_completes_commands_and_what_can_be_run() {
    let script = r#"
        compdef() { : }
        compadd() { print -rl -- $values $open; values=() open=() }
        source ./flow.zsh
        words=(${=1}) CURRENT=$#words
        _flow"#;
    let place = place();
    for (line, completed) in LINES {
        let said = says(&place, "zsh", &["-f", "-c", script, "zsh", line]);
        assert_eq!(said, completed, "{line}");
    }
}

#[test]
fn fish_completes_commands_and_what_can_be_run() {
    let place = place();
    for (line, completed) in LINES {
        let script = format!("source flow.fish; complete -C '{line}'");
        let said = says(&place, "fish", &["--no-config", "-c", &script]);
        let mut said: Vec<&str> = said
            .iter()
            .map(|it| it.split('\t').next().unwrap())
            .collect();
        said.sort_unstable();
        assert_eq!(said, completed, "{line}");
    }
}

#[test]
fn runs_are_completed_by_how_they_stand() {
    let place = place();
    place.run(&["hello", "-p", "who=x"]);
    let all = place.run(&["__complete", "show", ""]).stdout;
    assert!(
        all.starts_with("latest\t") && all.contains("hello completed"),
        "{all}"
    );
    let open = place.run(&["__complete", "answer", ""]).stdout;
    assert_eq!(open.lines().count(), 1, "{open}");
    // Files are the shell's to complete.
    assert_eq!(place.run(&["__complete", "check", ""]).stdout, "");
}
