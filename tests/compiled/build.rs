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
    for page in PAGES {
        program(page, &root, &out)?;
    }
    Ok(())
}

/// A page with a definition and a program that uses it.
struct Page {
    /// The page.
    path: &'static str,
    /// What stands before the definition.
    definition: &'static str,
    /// What stands before the program.
    program: &'static str,
    /// The file that the program says.
    file: &'static str,
    /// The module.
    module: &'static str,
}

const PAGES: &[Page] = &[
    Page {
        path: "README.md",
        definition: "```yaml\n# .flow/workflows/release.yaml\n",
        program: "```rust\n",
        file: "workflows/release.yaml",
        module: "release",
    },
    Page {
        path: "docs/embedding.md",
        definition: "```yaml\n",
        program: "```rust,ignore\n",
        file: "workflows/deploy.yaml",
        module: "deploy",
    },
];

/// Writes the program of a page, with the definition of the page, as a module.
fn program(page: &Page, root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let path = root.join(page.path);
    println!("cargo::rerun-if-changed={}", path.display());
    let text = fs::read_to_string(path)?;
    let block = |start: &str| {
        let rest = text.split(start).nth(1);
        let block = rest.and_then(|rest| rest.split("```").next());
        block.ok_or_else(|| format!("{} has no `{start}`", page.path))
    };
    let definition = out.join(page.module).with_extension("yaml");
    fs::write(&definition, block(page.definition)?)?;
    let written = format!("workflow!({:?})", page.file);
    let meant = format!("workflow!(mod {} = {definition:?})", page.module);
    let program = block(page.program)?;
    if !program.contains(&written) {
        return Err(format!("the program of {} does not say `{written}`", page.path).into());
    }
    let program = program.replace(&written, &meant);
    fs::write(out.join(page.module).with_extension("rs"), program)?;
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
