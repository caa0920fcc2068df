//! A whole workflow as a module.

use flow_model::graph::{Body, Graph, Task};
use proc_macro2::TokenStream;
use quote::quote;

use crate::machine::machine;
use crate::names::{Clash, Names, ident, lower};
use crate::record::Records;
use crate::tools::{Provided, tools};
use crate::{doc, literal};

/// What generated code depends on besides the graph.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the module; `None` for one made from the workflow's name.
    pub module: Option<String>,
    /// The path of the `flow` crate.
    pub root: TokenStream,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            module: None,
            root: quote!(::flow),
        }
    }
}

/// Generated code with what stands in its way.
#[derive(Clone, Debug)]
pub struct Module {
    /// One `pub mod`.
    pub tokens: TokenStream,
    /// Names that are one in Rust. The code compiles all the same, with one of them numbered.
    pub clashes: Vec<Clash>,
}

/// Turns a graph into a module.
///
/// ```
/// use flow_model::{compile, loader::NoLoader, source::Source};
///
/// let source = Source::new("hello.yaml", "steps:\n  - {id: greet, type: shell, command: echo hi}\n");
/// let compiled = compile(source, &NoLoader);
/// let module = flow_codegen::module(compiled.graph().unwrap(), &Default::default());
/// assert!(module.clashes.is_empty());
/// assert!(module.tokens.to_string().contains("enum State"));
/// ```
#[must_use]
pub fn module(graph: &Graph, options: &Options) -> Module {
    let root = &options.root;
    let mut clashes = Vec::new();
    let name = match &options.module {
        Some(name) => ident(name),
        None => ident(&lower(&graph.name)),
    };
    let about = doc::module(graph);
    let subject = format!("the workflow `{}`", graph.name);
    let (types, adapter) = types(graph, &mut clashes);
    let engine = engine(graph, root, &adapter);
    let states = states(&graph.body, &subject, root, &mut clashes);
    let failure = failure(&graph.on_error.body, &subject, root, &mut clashes);
    let tasks = tasks(&graph.tasks, root, &mut clashes);
    let inputs = typed_inputs(graph).then(|| ident("Inputs"));
    let literal = literal::graph(graph, inputs.as_ref());
    let tokens = quote! {
        #[doc = #about]
        #[allow(clippy::module_inception, reason = "the names are the definition's")]
        pub mod #name {
            use #root::__private::*;
            #types
            #states
            #failure
            #tasks

            /// The checked definition.
            pub static GRAPH: Graph = {
                use self::graph::{*, build::*};
                #literal
            };

            #engine
        }
    };
    Module { tokens, clashes }
}

fn typed_inputs(graph: &Graph) -> bool {
    graph.inputs.is_some()
}

/// What the engine needs to know, and how a run is begun.
fn engine(graph: &Graph, root: &TokenStream, adapter: &TokenStream) -> TokenStream {
    let state = match graph.body.nodes.is_empty() {
        true => quote!(NoState),
        false => quote!(State),
    };
    let run = doc::doc(&format!(
        "Runs `{}` to its end. What it does is recorded by the host before it is done.\n\n\
         # Errors\n\nInputs that are not as declared; why there is no output.",
        graph.name
    ));
    let start = doc::doc(
        "Starts a run in the background.\n\n# Errors\n\nInputs that are not as declared; those of the host.",
    );
    let resume = doc::doc(
        "Goes on with a run in the background; one that failed tries its failed step again.\n\n\
         # Errors\n\nThere is no such run of this workflow; those of the host.",
    );
    quote! {
        with_runtime! {
            /// The workflow as the engine knows it.
            pub enum Workflow {}

            impl #root::Workflow for Workflow {
                type Inputs = Inputs;
                type Output = Output;
                type State = #state;

                fn graph() -> &'static Graph {
                    &GRAPH
                }
            }

            /// A run of the workflow.
            pub type Run = #root::Run<Workflow>;

            #run
            pub fn run(inputs: Inputs, host: &Host) -> Boxed<'_, Result<Output, Error>> {
                Run::complete(inputs, host)
            }

            #start
            pub fn start(inputs: Inputs, host: &Host) -> Boxed<'_, Result<Run, Error>> {
                Run::start(inputs, host)
            }

            #resume
            pub fn resume(id: RunId, host: &Host) -> Boxed<'_, Result<Run, Error>> {
                Run::resume(id, host)
            }

            #adapter
        }
    }
}

/// `Inputs`, `Output`, `Tools` and the structs they need; apart from them the function `tools`.
fn types(graph: &Graph, clashes: &mut Vec<Clash>) -> (TokenStream, TokenStream) {
    let mut records = Records::new(clashes);
    let inputs = match &graph.inputs {
        Some(fields) => {
            let said = format!("What a run of `{}` is given.", graph.name);
            records.record(&ident("Inputs"), &said, "input", fields);
            TokenStream::new()
        }
        None => quote! {
            /// What a run is given: anything.
            pub type Inputs = Values;
        },
    };
    let output = match graph.outputs.is_empty() {
        true => quote! {
            /// What a run gives: anything.
            pub type Output = Value;
        },
        false => {
            let fields: Vec<_> = graph.outputs.iter().map(|o| o.field.clone()).collect();
            let said = format!("What a run of `{}` gives.", graph.name);
            records.record(&ident("Output"), &said, "output", &fields);
            TokenStream::new()
        }
    };
    let Provided {
        declaration,
        adapter,
    } = tools(&graph.tools, &mut records);
    let items = records.into_items();
    (quote!(#inputs #output #items #declaration), adapter)
}

/// The states of a body with the outcomes they have.
fn states(body: &Body, subject: &str, root: &TokenStream, clashes: &mut Vec<Clash>) -> TokenStream {
    let machine = machine(body, subject, root, clashes);
    match machine.is_empty() {
        true => machine,
        false => quote! {
            pub use #root::Outcome;
            #machine
        },
    }
}

/// The states of failure steps.
fn failure(
    body: &Body,
    subject: &str,
    root: &TokenStream,
    clashes: &mut Vec<Clash>,
) -> TokenStream {
    let about = doc::doc(&format!("What happens when {subject} fails."));
    let subject = format!("the failure steps of {subject}");
    let states = states(body, &subject, root, clashes);
    match states.is_empty() {
        true => states,
        false => quote! {
            #about
            pub mod on_error {
                use #root::__private::*;
                #states
            }
        },
    }
}

fn tasks(tasks: &[Task], root: &TokenStream, clashes: &mut Vec<Clash>) -> TokenStream {
    if tasks.is_empty() {
        return TokenStream::new();
    }
    let mut names = Names::new("task", &[]);
    let mut modules = TokenStream::new();
    for task in tasks {
        let name = names.claim(&task.name, lower(&task.name), None, clashes);
        let subject = format!("the task `{}`", task.name);
        let about = doc::said_or(
            task.description.as_deref(),
            &format!("The task `{}`.", task.name),
        );
        let inputs = task.inputs.as_ref().map(|fields| {
            let mut records = Records::new(clashes);
            let said = format!("What the task `{}` is given for an item.", task.name);
            records.record(&ident("Inputs"), &said, "input", fields);
            records.into_items()
        });
        let states = states(&task.body, &subject, root, clashes);
        let failure = task
            .on_error
            .as_ref()
            .map(|on_error| failure(&on_error.body, &subject, root, clashes));
        let import =
            (inputs.is_some() || !states.is_empty()).then(|| quote!(use #root::__private::*;));
        modules.extend(quote! {
            #about
            pub mod #name { #import #inputs #states #failure }
        });
    }
    quote! {
        /// What is run once per item.
        pub mod tasks { #modules }
    }
}
