//! The trait that an embedder implements for the tools a definition declares.

use flow_model::graph::ToolSignature;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::doc;
use crate::names::{Names, lower, upper};
use crate::record::Records;

/// The trait; nothing when no tool is declared. Structs for parameters and results go to
/// `records`.
pub(crate) fn tools(tools: &[ToolSignature], records: &mut Records<'_>) -> TokenStream {
    if tools.is_empty() {
        return TokenStream::new();
    }
    let mut names = Names::new("tool", &[]);
    let methods = tools.iter().map(|tool| {
        let ident = records.claim(&mut names, &tool.name, lower(&tool.name));
        method(tool, &ident, records)
    });
    quote! {
        /// The tools that the definition leaves to the embedder.
        pub trait Tools {
            #(#methods)*
        }
    }
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
