//! Generated code as text, to be read in review. The same modules are compiled in the root
//! crate's tests. `FLOW_BLESS=1` writes what is generated now.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::fs;
use std::path::Path;

use flow_codegen::{Files, Options, expand, format};

#[test]
fn generated_code_is_as_reviewed() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let bless = std::env::var_os("FLOW_BLESS").is_some();
    let mut differ = Vec::new();
    for entry in fs::read_dir(base.join("definitions")).unwrap() {
        let path = entry.unwrap().path();
        let files = Files::new(&base);
        let source = files.open(&files.name_of(&path)).unwrap();
        let stem = source.stem().to_owned();
        let expansion = expand(source, &files, &Options::default());
        let texts: Vec<&str> = expansion.findings.iter().map(|f| f.text.as_str()).collect();
        assert!(texts.is_empty(), "{}", texts.join("\n\n"));
        let code = format(&expansion.tokens);
        let golden = base.join("golden").join(format!("{stem}.rs"));
        if bless {
            fs::write(&golden, &code).unwrap();
        } else if fs::read_to_string(&golden).unwrap_or_default() != code {
            differ.push(stem);
        }
    }
    assert!(
        differ.is_empty(),
        "generated code differs for {differ:?}; look at it with FLOW_BLESS=1 and git diff"
    );
}
