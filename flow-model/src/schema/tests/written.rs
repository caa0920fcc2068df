//! Definitions that people wrote.

use std::path::{Path, PathBuf};

use super::judge::Judge;
use crate::diagnostic::Code;
use crate::source::{self, FileId, Source, Tree};

fn has_duplicates(tree: &Tree) -> bool {
    match (tree.items(), tree.entries()) {
        (Some(items), _) => items.iter().any(has_duplicates),
        (_, Some(entries)) => entries.iter().enumerate().any(|(index, entry)| {
            let earlier = &entries[..index];
            earlier.iter().any(|e| e.key.value == entry.key.value) || has_duplicates(&entry.value)
        }),
        (None, None) => false,
    }
}

fn agree_on_text(judge: &mut Judge, name: &str, text: &str) {
    let source = Source::new(name, text);
    if let Ok(tree) = source::parse(&source, FileId::default())
        && !has_duplicates(&tree)
    {
        judge.agree(&source, &tree);
    }
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            files_below(&path, found);
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            found.push(path);
        }
    }
}

#[test]
fn schema_and_structure_agree_on_the_examples_of_the_rules() {
    let mut judge = Judge::new();
    for code in Code::ALL {
        for text in [code.bad_example(), code.good_example()] {
            agree_on_text(&mut judge, code.as_str(), text);
        }
    }
    assert!(judge.accepted > 50 && judge.rejected > 5);
}

#[test]
fn schema_and_structure_agree_on_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
    let mut files = Vec::new();
    files_below(&corpus, &mut files);
    let mut judge = Judge::new();
    for file in files {
        if let Ok(text) = std::fs::read_to_string(&file) {
            agree_on_text(&mut judge, &file.display().to_string(), &text);
        }
    }
}
