//! What `workflow!` makes of a path, of a text, and of mistakes.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::fs;

use flow_codegen::{Expansion, Invocation};
use tempfile::TempDir;

/// A directory that is removed again.
struct Directory(TempDir);

impl Directory {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = directory.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Directory(directory)
    }

    fn expand(&self, text: &str, line: usize) -> Expansion {
        let invocation = Invocation {
            text: text.to_owned(),
            module: None,
            manifest: self.0.path().to_owned(),
            file: Some(self.0.path().join("src/deep/main.rs")),
            file_name: "src/deep/main.rs".to_owned(),
            line,
        };
        invocation.expand()
    }
}

fn texts(expansion: &Expansion) -> Vec<&str> {
    expansion.findings.iter().map(|f| f.text.as_str()).collect()
}

const GOOD: &str = "steps:\n  - {id: greet, type: shell, command: echo hi}\n";

#[test]
fn a_path_is_relative_to_the_package_or_to_the_calling_file() {
    let files = [("flows/a.yaml", GOOD), ("src/deep/b.yaml", GOOD)];
    let directory = Directory::new(&files);
    for (text, name) in [("flows/a.yaml", "a"), ("./b.yaml", "b")] {
        let expansion = directory.expand(text, 1);
        assert_eq!(texts(&expansion), Vec::<&str>::new());
        assert_eq!(expansion.files.len(), 1);
        assert!(
            expansion
                .tokens
                .to_string()
                .contains(&format!("pub mod {name}"))
        );
    }
    let missing = directory.expand("./a.yaml", 1);
    let [text] = texts(&missing)[..] else {
        panic!("{missing:?}");
    };
    assert!(text.starts_with("`./a.yaml` cannot be read: there is no such file"));
}

#[test]
fn the_finding_in_the_documentation_is_a_real_one() {
    let page = include_str!("../../docs/embedding.md");
    let definition = page
        .split("```yaml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let faulty = definition.replacen("next_state: copy", "next_state: cpy", 1);
    let directory = Directory::new(&[("workflows/deploy.yaml", faulty.as_str())]);
    let expansion = directory.expand("workflows/deploy.yaml", 1);
    let [text] = texts(&expansion)[..] else {
        panic!("{expansion:?}");
    };
    // As rustc shows it: further lines stand under the first.
    let shown = format!("error: {}", text.replace('\n', "\n       "));
    assert!(page.contains(&shown), "{shown}");
}

#[test]
fn a_text_has_the_lines_of_the_program() {
    let directory = Directory::new(&[]);
    let text = "\n    name: x\n    steps:\n      - {id: a, type: shel, command: make}\n";
    let expansion = directory.expand(text, 40);
    let [text] = texts(&expansion)[..] else {
        panic!("{expansion:?}");
    };
    assert!(text.contains("--> src/deep/main.rs:43:23"), "{text}");
    assert!(
        text.contains("43 |       - {id: a, type: shel, command: make}"),
        "{text}"
    );
}

#[test]
fn imports_are_read_and_watched() {
    let tasks = "tasks:\n  each:\n    steps:\n      - {type: shell, command: 'echo {{ item }}'}\n";
    let main =
        "imports: [../lib/_tasks.yaml]\nsteps:\n  - {type: foreach, items: [1], task: each}\n";
    let directory = Directory::new(&[("lib/_tasks.yaml", tasks), ("flows/a.yaml", main)]);
    let expansion = directory.expand("flows/a.yaml", 1);
    assert_eq!(texts(&expansion), Vec::<&str>::new());
    let names: Vec<_> = expansion
        .files
        .iter()
        .map(|f| f.file_name().unwrap())
        .collect();
    assert_eq!(names, ["a.yaml", "_tasks.yaml"]);
    let code = expansion
        .into_tokens(proc_macro2::Span::call_site())
        .to_string();
    assert_eq!(code.matches("include_str !").count(), 2);
}

#[test]
fn a_faulty_definition_still_gives_its_module() {
    let text = "name: shop\ninputs: {n: integer}\ninitial_state: nowhere\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n";
    let directory = Directory::new(&[("shop.yaml", text), ("broken.yaml", "steps: [")]);
    for (file, parts) in [
        (
            "shop.yaml",
            [
                "pub mod shop",
                "pub n : Option < i64 >",
                "INITIAL : State = State :: A",
            ],
        ),
        (
            "broken.yaml",
            ["pub mod broken", "pub type Inputs", "enum State"],
        ),
    ] {
        let expansion = directory.expand(file, 1);
        assert!(!expansion.findings.is_empty());
        let code = expansion
            .into_tokens(proc_macro2::Span::call_site())
            .to_string();
        for part in parts {
            assert!(code.contains(part), "{part}: {code}");
        }
        assert_eq!(
            code.matches(":: core :: compile_error !").count(),
            1,
            "{code}"
        );
    }
    let unread = directory.expand("\n  name: my-shop\n  steps: [\n", 1);
    assert!(unread.tokens.to_string().contains("pub mod my_shop"));
}

#[test]
fn a_warning_of_the_checker_is_a_warning_of_the_compiler() {
    let text = "inputs: {x: string}\nsteps:\n  - {type: shell, command: make}\n";
    let directory = Directory::new(&[("a.yaml", text)]);
    let expansion = directory.expand("a.yaml", 1);
    let [said] = texts(&expansion)[..] else {
        panic!("{expansion:?}");
    };
    assert!(
        said.starts_with("F106: nothing in the workflow reads the input `x`\n --> a.yaml:1:10")
    );
    let code = expansion
        .into_tokens(proc_macro2::Span::call_site())
        .to_string();
    assert!(
        code.contains("# [deprecated (note = \"F106: nothing"),
        "{code}"
    );
    assert!(!code.contains("compile_error"), "{code}");
}
