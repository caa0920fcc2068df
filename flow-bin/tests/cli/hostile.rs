//! Broken input of every kind: a located finding each, soon, and never a panic.

use super::{GOOD, Place};

#[test]
fn every_broken_text_is_one_finding_or_more() {
    let deep = format!("steps: {}{}", "[".repeat(5000), "]".repeat(5000));
    let deep_json = format!("{{\"steps\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
    let deep_block: String = (0..2000)
        .map(|n| format!("{}a:\n", " ".repeat(n)))
        .collect();
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb += &format!("a{n}: &a{n} [{aliases}]\n");
    }
    let cases: [(&str, &[u8], &str); 17] = [
        ("empty", b"", "F004"),
        ("comments", b"# nothing\n", "F004"),
        ("not YAML", b"steps: [a, b\nfoo: }\n", "F001"),
        ("tabs", b"steps:\n\t- type: shell\n", "F001"),
        ("deep", deep.as_bytes(), "F003"),
        ("deep JSON", deep_json.as_bytes(), "F003"),
        ("deep block", deep_block.as_bytes(), "F003"),
        ("alias bomb", bomb.as_bytes(), "F003"),
        ("duplicate keys", b"name: a\nname: b\nsteps: []\n", "F005"),
        ("not UTF-8", b"name: caf\xe9\nsteps: []\n", "F002"),
        ("UTF-16", b"\xff\xfen\0a\0m\0e\0", "F002"),
        ("a number", b"42\n", "F008"),
        ("a list", b"- a\n- b\n", "F008"),
        ("a number for a map", b"inputs: 5\nsteps: []\n", "F008"),
        ("null", b"~\n", "F004"),
        ("two documents", b"steps: []\n---\nsteps: []\n", "F001"),
        ("NUL", b"\0\0\0\0", "F001"),
    ];
    let place = Place::new();
    for (what, bytes, code) in cases {
        place.file("x.yaml", bytes);
        let ran = place.run(&["check", "x.yaml", "--format=json"]);
        assert_eq!(ran.code, 3, "{what}: {}{}", ran.stdout, ran.stderr);
        let codes: Vec<String> = ran.found().into_iter().map(|it| it.0).collect();
        assert!(codes.contains(&code.to_owned()), "{what}: {}", ran.stdout);
        let text = place.run(&["check", "x.yaml"]);
        assert!(text.stdout.contains("x.yaml:"), "{what}: {}", text.stdout);
        let piped = place.pipe(&["check", "-", "--format=json"], bytes);
        assert_eq!(piped.found(), ran.found(), "{what}");
    }
}

#[test]
fn fifty_megabytes_are_refused_without_being_read() {
    let place = Place::new();
    place.file("big.yaml", "- é\n".repeat(10_000_000));
    let ran = place.run(&["check", "big.yaml", "--format=json"]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.found(), [("F003".to_owned(), 1, 1)]);
    assert!(ran.stdout.len() < 10_000);
    place.file("main.yaml", format!("imports: [big.yaml]\n{GOOD}"));
    let ran = place.run(&["check", "main.yaml", "--format=json"]);
    assert_eq!(ran.found()[0].0, "F003");
}

#[cfg(unix)]
#[test]
fn pipes_devices_and_directories_are_not_read_as_files() {
    let place = Place::with(&[("dir/a.yaml", GOOD)]);
    let ran = place.run(&["check", "/dev/zero"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`/dev/zero` is not a regular file"));
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe.yaml"))
        .status();
    assert!(made.unwrap().success());
    let ran = place.run(&["check", "pipe.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`pipe.yaml` is not a regular file"));
    let ran = place.run(&["check", "."]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = place.run(&["graph", "./dir"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("`./dir` is a directory"),
        "{}",
        ran.stderr
    );
    place.file("main.yaml", format!("imports: [pipe.yaml, dir]\n{GOOD}"));
    let ran = place.run(&["check", "main.yaml"]);
    assert!(ran.stdout.contains("it is not a regular file"));
    assert!(ran.stdout.contains("it is a directory"));
}

#[test]
fn whoever_stops_reading_is_not_told_of_it() {
    let place = Place::new();
    let mut command = place.command(&["check", "-"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), super::BAD.as_bytes()).unwrap();
    let ran = super::Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (141, ""));
}
