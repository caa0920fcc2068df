//! The trait that an embedder implements for the tools a definition declares.

use flow_model::graph::ToolSignature;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::doc;
use crate::names::{Names, lower, upper};
use crate::record::Records;

/// The trait and what makes a host's tools of it.
pub(crate) struct Provided {
    /// The trait; nothing when no tool is declared.
    pub(crate) declaration: TokenStream,
    /// The function `tools`; nothing when no tool is declared.
    pub(crate) adapter: TokenStream,
}

/// Structs for parameters and results go to `records`.
pub(crate) fn tools(tools: &[ToolSignature], records: &mut Records<'_>) -> Provided {
    let mut provided = Provided {
        declaration: TokenStream::new(),
        adapter: TokenStream::new(),
    };
    if tools.is_empty() {
        return provided;
    }
    let mut scope = Names::new("tool", &[]);
    let mut methods = TokenStream::new();
    let mut arms = TokenStream::new();
    let mut names = Vec::new();
    for tool in tools {
        let ident = records.claim(&mut scope, &tool.name, lower(&tool.name));
        methods.extend(method(tool, &ident, records));
        let name: &str = &tool.name;
        arms.extend(quote!(#name => call.told(with.#ident(call.params()?).await),));
        names.push(name);
    }
    provided.declaration = quote! {
        /// The tools that the definition leaves to the program; `tools` gives them to a host.
        pub trait Tools {
            #methods
        }
    };
    provided.adapter = quote! {
        /// The tools of the definition as a host calls them, for `Host::with_tools`.
        pub fn tools<T: Tools + Send + Sync + 'static>(with: T) -> Typed<T> {
            Typed::new(with, &[#(#names),*], |with, call| {
                Box::pin(async move {
                    match call.tool {
                        #arms
                        _ => call.unknown(),
                    }
                })
            })
        }
    };
    provided
}

fn method(tool: &ToolSignature, ident: &Ident, records: &mut Records<'_>) -> TokenStream {
    let said = doc::said_or(
        tool.description.as_deref(),
        &format!("The tool `{}`.", tool.name),
    );
    let params = match &tool.params {
        Some(fields) => {
            let name = records.name(&tool.name, format!("{}Params", upper(&tool.name)));
            let said = format!("Parameters of the tool `{}`.", tool.name);
            records.record(&name, &said, "parameter", fields);
            quote!(#name)
        }
        None => quote!(Values),
    };
    let result = match tool.returns.is_empty() {
        true => quote!(Value),
        false => {
            let name = records.name(&tool.name, format!("{}Result", upper(&tool.name)));
            let said = format!("The result of the tool `{}`.", tool.name);
            records.record(&name, &said, "result", &tool.returns);
            quote!(#name)
        }
    };
    quote! {
        #said
        fn #ident(&self, params: #params)
        -> impl Future<Output = Result<#result, ToolError>> + Send;
    }
}
