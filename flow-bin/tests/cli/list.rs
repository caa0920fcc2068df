//! `flow list`.

use serde_json::json;

use super::{BAD, GOOD, Place};

const DEPLOY: &str = "\
description: Builds and ships
inputs:
  branch: {type: string, required: true, description: which branch}
  count: {type: integer, default: 3}
  token: {type: string, secret: true, default: hidden}
steps:
  - {type: shell, command: \"make {{ inputs.branch }} {{ inputs.count }} {{ inputs.token }}\"}
";

/// The workflows that are not built in.
fn names(value: &serde_json::Value) -> Vec<(String, String)> {
    let workflows = value["workflows"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    workflows
        .iter()
        .filter(|it| it["source"] != "builtin")
        .map(|it| (text(&it["name"]), text(&it["source"])))
        .collect()
}

#[test]
fn json_describes_every_workflow() {
    let place = Place::with(&[(".flow/workflows/deploy.yaml", DEPLOY)]);
    let ran = place.run(&["list", "--source", "project", "--format", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let value = ran.json();
    let deploy = &value["workflows"][0];
    assert_eq!(deploy["name"], "deploy");
    assert_eq!(deploy["description"], "Builds and ships");
    assert_eq!(deploy["source"], "project");
    assert_eq!(deploy["error"], json!(null));
    let parameters = json!([
        {"name": "branch", "type": "string", "required": true, "default": null, "description": "which branch"},
        {"name": "count", "type": "integer", "required": false, "default": 3, "description": null},
        {"name": "token", "type": "string", "required": false, "default": null, "description": null},
    ]);
    assert_eq!(deploy["parameters"], parameters);
}

#[test]
fn the_project_stands_before_the_user() {
    let place = Place::with(&[
        (".flow/workflows/a.yaml", GOOD),
        (".flow/workflows/z/b.yaml", GOOD),
        ("config/workflows/a.yaml", BAD),
        ("config/workflows/c.yml", GOOD),
    ]);
    let ran = place.run(&["list", "--format", "json"]);
    let expected = [("a", "project"), ("c", "user"), ("z:b", "project")];
    let expected = expected.map(|(name, source)| (name.to_owned(), source.to_owned()));
    assert_eq!(names(&ran.json()), expected);
    let shadowed = json!([{"name": "a", "source": "user", "file": "config/workflows/a.yaml"}]);
    assert_eq!(ran.json()["shadowed"], shadowed);
    assert!(
        ran.stderr
            .contains("config/workflows/a.yaml is not found by `a`")
    );
    let ran = place.run(&["list", "--source", "user", "--format", "json"]);
    assert_eq!(names(&ran.json()), [("c".to_owned(), "user".to_owned())]);
    let ran = place.run(&["list", "--source", "builtin", "--format", "json"]);
    let builtins = ran.json();
    let builtins = builtins["workflows"].as_array().unwrap().iter();
    assert!(builtins.clone().all(|it| it["source"] == "builtin"));
    assert!(builtins.map(|it| &it["name"]).any(|name| name == "tour"));
}

#[test]
fn two_spellings_of_a_name_shadow_each_other() {
    let place = Place::with(&[
        (".flow/workflows/a:b.yaml", GOOD),
        (".flow/workflows/a/b.yaml", BAD),
        (".flow/workflows/c.json", BAD),
        (".flow/workflows/c.yaml", GOOD),
    ]);
    let ran = place.run(&["list", "--format", "json"]);
    let value = ran.json();
    assert_eq!(value["workflows"][0]["file"], ".flow/workflows/a:b.yaml");
    assert_eq!(value["workflows"][1]["file"], ".flow/workflows/c.yaml");
    assert_eq!(value["shadowed"].as_array().unwrap().len(), 2);
}

#[test]
fn a_faulty_file_is_listed_with_its_fault() {
    let place = Place::with(&[
        (".flow/workflows/good.yaml", DEPLOY),
        (".flow/workflows/bad.yaml", BAD),
        (".flow/workflows/not a name.yaml", GOOD),
        (".flow/workflows/empty.yaml", ""),
    ]);
    place.file(".flow/workflows/bytes.yaml", b"name: \xff\n");
    let ran = place.run(&["list", "--source", "project", "--format", "json"]);
    assert_eq!(ran.code, 0);
    let value = ran.json();
    assert_eq!(value["workflows"].as_array().unwrap().len(), 4);
    for workflow in value["workflows"].as_array().unwrap() {
        let good = workflow["name"] == "good";
        assert_eq!(workflow["error"].is_null(), good, "{workflow}");
    }
    assert!(
        ran.stderr.contains("not a name.yaml is left out"),
        "{}",
        ran.stderr
    );
    let table = place.run(&["list"]).stdout;
    assert!(
        table.contains("error: line 2: there is no step type `shel`"),
        "{table}"
    );
}

#[test]
fn the_table_stands_in_columns() {
    let place = Place::with(&[
        (".flow/workflows/deploy.yaml", DEPLOY),
        (".flow/workflows/a/long-name.yaml", GOOD),
    ]);
    let ran = place.run(&["list", "--source", "project"]);
    let expected = "\
NAME         SOURCE   PARAMETERS              DESCRIPTION
a:long-name  project
deploy       project  branch [count] [token]  Builds and ships
";
    assert_eq!(ran.stdout, expected);
    let ran = place.run(&["list", "--source", "project", "--verbose"]);
    let expected = "\
a:long-name  project, .flow/workflows/a/long-name.yaml

deploy  project, .flow/workflows/deploy.yaml
  Builds and ships
    branch  string   required       which branch
    count   integer  default 3
    token   string   has a default
";
    assert_eq!(ran.stdout, expected);
}

#[test]
fn yaml_says_the_same_as_json() {
    let place = Place::with(&[(".flow/workflows/deploy.yaml", DEPLOY)]);
    let ran = place.run(&["list", "--source", "project", "--format", "yaml"]);
    assert!(ran.stdout.starts_with("workflows:\n  - name: deploy\n"));
    assert!(
        ran.stdout
            .contains("\n      - name: count\n        type: integer\n")
    );
}

#[test]
fn a_directory_is_a_project_or_holds_definitions() {
    let place = Place::with(&[
        ("project/.flow/workflows/a.yaml", GOOD),
        ("project/other.yaml", GOOD),
        ("flows/x.yaml", GOOD),
        ("flows/sub/y.yaml", GOOD),
        ("flows/package.json", "{}"),
        ("config/workflows/user.yaml", GOOD),
    ]);
    let listed = |directory: &str| {
        let ran = place.run(&["list", directory, "--format=json"]);
        let names = names(&ran.json()).into_iter().map(|it| it.0);
        names.collect::<Vec<_>>()
    };
    assert_eq!(listed("project"), ["a"]);
    assert_eq!(listed("flows"), ["sub:y", "x"]);
    assert_eq!(place.run(&["list", "nowhere"]).code, 2);
    assert_eq!(place.run(&["list", "flows/x.yaml"]).code, 2);
}

#[test]
fn files_that_are_only_imported_are_no_workflows() {
    let place = Place::with(&[
        (".flow/workflows/a.yaml", GOOD),
        (".flow/workflows/parts.yaml", "tasks: {}\n"),
    ]);
    let ran = place.run(&["list", "--format=json"]);
    assert_eq!(names(&ran.json()).len(), 1);
}

#[test]
fn an_empty_library_says_where_it_looked() {
    let ran = Place::with(&[(".flow/x", "")]).run(&["list", "--source", "project"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("no workflows in .flow/workflows"));
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let place = Place::with(&[
        ("outside.yaml", GOOD),
        ("project/inside.yaml", GOOD),
        ("project/.flow/workflows/a.yaml", GOOD),
        ("config/workflows/b.yaml", GOOD),
    ]);
    let link = |to: &str, from: &str| {
        std::os::unix::fs::symlink(place.path(to), place.path(from)).unwrap();
    };
    link("outside.yaml", "project/.flow/workflows/out.yaml");
    link("project/inside.yaml", "project/.flow/workflows/in.yaml");
    link("outside.yaml", "config/workflows/own.yaml");
    link("project", "project/.flow/workflows/loop");
    let run = |arguments: &[&str]| {
        let mut command = place.command_in("project".as_ref(), arguments);
        super::Ran::from(command.output().unwrap())
    };
    let ran = run(&["list", "--format=json"]);
    let names: Vec<String> = names(&ran.json()).into_iter().map(|it| it.0).collect();
    assert_eq!(names[..4], ["a", "b", "in", "loop:inside"]);
    assert_eq!(names.last().unwrap(), "own");
    assert!(ran.stderr.contains("leads out of"), "{}", ran.stderr);
    let ran = run(&["graph", "out"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("leads out of"), "{}", ran.stderr);
}

#[test]
fn a_key_of_the_settings_that_means_nothing_is_told() {
    let place = Place::with(&[("flow.toml", "workflow = [\"flows\"]\n")]);
    let listed = place.run(&["list"]);
    let told = "flow.toml: `workflow` means nothing; did you mean `workflows`?";
    assert!(listed.stderr.contains(told), "{}", listed.stderr);
    let doctor = place.run(&["doctor"]);
    let all = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(all.contains(told), "{all}");
}

#[test]
fn a_long_default_is_cut_in_the_detailed_list() {
    let place = Place::new();
    let listed = place.run(&["list", "--verbose"]).stdout;
    assert!(listed.contains("test_command"), "{listed}");
    let longest = listed.lines().map(|line| line.chars().count()).max();
    assert!(longest.unwrap() < 240, "{listed}");
}
