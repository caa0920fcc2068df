//! The recipes of `docs/cookbook.md`: run as they are printed, they print what the page says.
//!
//! `FLOW_BLESS=1` writes what they print into the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Place;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cookbook.md")
}

/// A recipe: files, what is typed, and where the page says what comes of it.
#[derive(Default)]
struct Recipe {
    title: String,
    files: Vec<(String, String)>,
    typed: String,
    printed: String,
    /// The bytes of the page that `printed` is.
    range: std::ops::Range<usize>,
}

fn recipes(page: &str) -> Vec<Recipe> {
    let mut recipes: Vec<Recipe> = Vec::new();
    let mut fence: Option<(String, usize)> = None;
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if let (None, Some(title)) = (&fence, line.strip_prefix("## ")) {
            recipes.push(Recipe {
                title: title.trim().to_owned(),
                ..Recipe::default()
            });
        }
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let Some((kind, from)) = fence.take() else {
            fence = Some((info.trim().to_owned(), at));
            continue;
        };
        let recipe = recipes.last_mut().unwrap();
        let text = page[from..start].to_owned();
        match kind.as_str() {
            "yaml" => {
                let name = text.lines().next().unwrap().strip_prefix("# ").unwrap();
                recipe.files.push((name.to_owned(), text));
            }
            "sh" => recipe.typed = text,
            "text" => {
                recipe.printed = text;
                recipe.range = from..start;
            }
            other => panic!("{}: a block of {other}", recipe.title),
        }
    }
    recipes
}

/// What is printed, with times and ids of runs that stand for all others.
fn settled(text: &str) -> String {
    let mut settled = String::new();
    for line in text.lines().filter(|line| !line.contains("Killed")) {
        let mut words = Vec::new();
        for word in line.split(' ') {
            let digits = word.trim_end_matches('s');
            let is_time = word.ends_with('s') && digits.parse::<f64>().is_ok();
            let bare = word.trim_matches('`');
            let is_run = bare.starts_with("r-") && bare.len() == 20;
            words.push(match (is_time, is_run) {
                (true, _) => "0.0s".to_owned(),
                (_, true) => word.replace(bare, "r-01hzx3v9k4m2t7q8wd"),
                _ => word.to_owned(),
            });
        }
        settled.push_str(words.join(" ").trim_end());
        settled.push('\n');
    }
    settled
}

/// Types what a recipe says and gives all that is printed.
fn typed(recipe: &Recipe) -> String {
    let place = Place::new();
    for (name, text) in &recipe.files {
        place.file(name, text);
    }
    let flow = Path::new(env!("CARGO_BIN_EXE_flow"));
    let programs = std::env::var("PATH").unwrap();
    let programs = format!("{}:{programs}", flow.parent().unwrap().display());
    let plain = place.command(&[]);
    let script = format!("exec 2>&1\n{}", recipe.typed);
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(plain.get_current_dir().unwrap())
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", programs)
        .env("LC_ALL", "C")
        .env_remove("FLOW_AGENT")
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains("panicked"), "{printed}");
    settled(&printed)
}

#[test]
fn every_recipe_prints_what_the_page_says() {
    let mut page = fs::read_to_string(path()).unwrap();
    let recipes = recipes(&page);
    assert!(recipes.len() >= 10);
    let results = std::thread::scope(|scope| {
        let all: Vec<_> = recipes.iter().map(|it| scope.spawn(|| typed(it))).collect();
        let ended = all.into_iter().map(|it| it.join().unwrap());
        ended.collect::<Vec<String>>()
    });
    if std::env::var_os("FLOW_BLESS").is_some() {
        for (recipe, printed) in recipes.iter().zip(&results).rev() {
            page.replace_range(recipe.range.clone(), printed);
        }
        fs::write(path(), page).unwrap();
        return;
    }
    for (recipe, printed) in recipes.iter().zip(&results) {
        assert_eq!(
            *printed, recipe.printed,
            "{}: run with FLOW_BLESS=1 to write what is printed into the page",
            recipe.title
        );
    }
}
