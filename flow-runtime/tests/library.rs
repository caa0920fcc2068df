//! Names, precedence and built-ins of a library.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::fs;
use std::path::Path;

use flow_model::loader::{Loader, Lookup};
use flow_runtime::library::{Error, Fault, Library, Place, Project, read};

const GOOD: &str = "steps:\n  - {type: shell, command: make}\n";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn the_nearest_place_wins_and_the_rest_is_shadowed() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "project/a.yaml", GOOD);
    write(root.path(), "user/a.yaml", GOOD);
    write(root.path(), "user/b.yaml", GOOD);
    // The order in which places are added does not matter.
    let library = Library::empty()
        .with_builtins([("a", GOOD), ("b", GOOD), ("c", GOOD)])
        .with_directory(Place::User, root.path().join("user"))
        .with_directory(Place::Project, root.path().join("project"));
    let place = |name: &str| library.get(name).unwrap().map(|entry| entry.place);
    assert_eq!(place("a"), Some(Place::Project));
    assert_eq!(place("b"), Some(Place::User));
    assert_eq!(place("c"), Some(Place::Builtin));
    assert_eq!(place("d"), None);
    let listing = library.list();
    let names: Vec<&str> = listing.entries.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let shadowed: Vec<(&str, Place)> = listing
        .shadowed
        .iter()
        .map(|it| (it.name.as_str(), it.place))
        .collect();
    let expected = [
        ("a", Place::User),
        ("a", Place::Builtin),
        ("b", Place::Builtin),
    ];
    assert_eq!(shadowed, expected);
}

#[test]
fn what_is_listed_is_what_is_found() {
    let root = tempfile::tempdir().unwrap();
    for path in [
        "a.yml",
        "a.json",
        "b:c.json",
        "b/c.yaml",
        "d/e/f.yaml",
        "g:h.yaml",
    ] {
        write(root.path(), path, GOOD);
    }
    let library = Library::empty().with_directory(Place::Project, root.path().to_owned());
    let listing = library.list();
    let names: Vec<&str> = listing.entries.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b:c", "d:e:f", "g:h"]);
    for entry in &listing.entries {
        assert_eq!(library.get(&entry.name).unwrap().as_ref(), Some(entry));
        assert_eq!(
            library.compile(entry).unwrap().graph().unwrap().name,
            entry.name
        );
    }
}

#[test]
fn no_name_leaves_its_directory() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "secret.yaml", GOOD);
    write(root.path(), "flows/a.yaml", GOOD);
    let library = Library::empty().with_directory(Place::Project, root.path().join("flows"));
    let absolute = root.path().join("secret").to_string_lossy().into_owned();
    let long = "a".repeat(300);
    let names = [
        "../secret",
        "..:secret",
        "a/../../secret",
        "",
        ":",
        ".",
        "a\0",
        &absolute,
        &long,
    ];
    for name in names {
        assert!(library.get(name).unwrap().is_none(), "{name}");
    }
}

#[test]
fn a_called_workflow_is_known_or_something_near_is() {
    let library = Library::empty().with_builtins([("deploy", GOOD)]);
    assert!(matches!(library.workflow("deploy"), Lookup::Found(_)));
    match library.workflow("deplyo") {
        Lookup::NotFound(known) => assert_eq!(known, ["deploy"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_faulty_definition_is_listed_with_its_first_fault() {
    let library = Library::empty().with_builtins([("bad", "steps:\n  - {type: shel}\n  - 5\n")]);
    let catalogue = library.catalogue();
    match &catalogue.workflows[0].definition {
        Err(Fault::Invalid { errors, line, .. }) => assert_eq!((*errors, *line), (2, 2)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_project_lists_more_directories() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        "flow.toml",
        "workflows = [\"flows\", \"../shared\"]\n[other]\nkey = 1\n",
    );
    write(root.path(), "deep/er/x", "");
    let project = Project::around(&root.path().join("deep/er"))
        .unwrap()
        .unwrap();
    assert_eq!(project.root(), root.path());
    let directories = [".flow/workflows", "flows", "../shared"].map(|it| root.path().join(it));
    assert_eq!(project.directories(), directories);
}

#[test]
fn what_cannot_be_read_says_why() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "file", "");
    let error = |path: &str| read(&root.path().join(path)).unwrap_err();
    assert!(matches!(error("none"), Error::Missing { .. }));
    assert!(matches!(error("file/x"), Error::Missing { .. }));
    assert!(matches!(error(""), Error::Directory { .. }));
}
