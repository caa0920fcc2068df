//! Generates the code of every definition in the repository that has no fault, and of random ones.

#[path = "src/random.rs"]
mod random;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use flow_codegen::{Files, Options, format, module, module_name};
use flow_model::compile;
use flow_model::graph::{Body, Graph};
use flow_model::source::Source;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Where definitions are, from the root of the repository.
const PLACES: [&str; 4] = [
    "workflows",
    "tests/corpus",
    "flow-codegen/tests/definitions",
    "examples",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/random.rs");
    let mut paths = Vec::new();
    for place in PLACES {
        let place = root.join(place);
        if place.is_dir() {
            println!("cargo::rerun-if-changed={}", place.display());
            walk(&place, &mut paths)?;
        }
    }
    paths.sort();
    let mut generated = Generated::default();
    for path in paths {
        let files = Files::new(&root);
        if let Ok(source) = files.open(&files.name_of(&path)) {
            generated.add(&source, &files);
        }
    }
    let nothing = Files::new(&root);
    for seed in 0..random::COUNT {
        let name = format!("random-{seed}.yaml");
        generated.add(&Source::new(name, random::definition(seed)), &nothing);
    }
    let (modules, cases) = (&generated.modules, &generated.cases);
    let tokens = quote! {
        #modules

        /// Every definition.
        pub static ALL: &[Case] = &[#cases];
    };
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("all.rs"), format(&tokens))?;
    readme(&root, &out)
}

/// The program of the README with the definition of the README.
fn readme(root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let page = root.join("README.md");
    println!("cargo::rerun-if-changed={}", page.display());
    let page = fs::read_to_string(page)?;
    let block = |start: &str| {
        let text = page
            .split(start)
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        text.ok_or_else(|| format!("the README has no `{start}`"))
    };
    let definition = out.join("release.yaml");
    fs::write(
        &definition,
        block("```yaml\n# .flow/workflows/release.yaml\n")?,
    )?;
    let written = r#"workflow!("workflows/release.yaml")"#;
    let meant = format!("workflow!(mod release = {:?})", definition);
    let program = block("```rust\n")?;
    if !program.contains(written) {
        return Err(format!("the README's program does not say `{written}`").into());
    }
    fs::write(out.join("readme.rs"), program.replace(written, &meant))?;
    Ok(())
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            walk(&path, paths)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            paths.push(path);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Generated {
    count: usize,
    modules: TokenStream,
    cases: TokenStream,
}

impl Generated {
    fn add(&mut self, source: &Source, files: &Files) {
        let compiled = compile(source.clone(), files);
        let Some(graph) = compiled.graph() else {
            return;
        };
        let name = module_name(&graph.name);
        let name = format!("m{}_{}", self.count, name.trim_start_matches('_'));
        let options = Options {
            module: Some(name.clone()),
            ..Options::default()
        };
        let generated = module(graph, &options);
        if !generated.clashes.is_empty() {
            return;
        }
        self.count += 1;
        self.modules.extend(generated.tokens);
        let module = format_ident!("{name}");
        let machines = machines(graph, &quote!(#module));
        let (file, text) = (source.name(), source.text());
        self.cases.extend(quote! {
            Case { name: #file, text: #text, graph: &#module::GRAPH, machines: &[#machines] },
        });
    }
}

/// A table for every body that has states.
fn machines(graph: &Graph, module: &TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut add = |body: &Body, place: TokenStream, path: TokenStream| {
        if !body.nodes.is_empty() {
            out.extend(quote!(crate::machine!(#path, |graph| #place),));
        }
    };
    add(&graph.body, quote!(Some(&graph.body)), quote!(#module));
    let failure = quote!(Some(&graph.on_error.body));
    add(&graph.on_error.body, failure, quote!(#module::on_error));
    for (index, task) in graph.tasks.iter().enumerate() {
        let name = flow_codegen::module_name(&task.name);
        let name: TokenStream = name.parse().unwrap_or_default();
        let path = quote!(#module::tasks::#name);
        add(
            &task.body,
            quote!(crate::task(graph, #index).map(|task| &task.body)),
            path.clone(),
        );
        if let Some(on_error) = &task.on_error {
            let place = quote!(crate::task(graph, #index)?.on_error.as_ref().map(|e| &e.body));
            add(&on_error.body, place, quote!(#path::on_error));
        }
    }
    out
}
