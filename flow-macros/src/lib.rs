//! `workflow!`: a definition as a Rust module, checked while the crate compiles.

use flow_codegen::Invocation;
use proc_macro::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token};

/// Makes a module of a workflow definition. A definition with an error does not compile.
///
/// * `workflow!("workflows/deploy.yaml")` – a file, relative to the package, or to the calling
///   file when the path starts with `./`. The module has the workflow's name.
/// * `workflow!(mod release = "workflows/deploy.yaml")` – with another name.
/// * `workflow!(r#" … "#)` – a text of more than one line is the definition itself.
///
/// The module has `Inputs`, `Output`, `State` with its transitions, `at` with a type per state,
/// `Tools` where the definition declares tools, and `GRAPH`. Its own documentation says the rest.
#[proc_macro]
pub fn workflow(input: TokenStream) -> TokenStream {
    match syn::parse::<Call>(input) {
        Ok(call) => call.expand().into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// `mod name = "text"` or `"text"`.
struct Call {
    module: Option<Ident>,
    text: LitStr,
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let module = match input.peek(Token![mod]) {
            true => {
                input.parse::<Token![mod]>()?;
                let name = input.parse()?;
                input.parse::<Token![=]>()?;
                Some(name)
            }
            false => None,
        };
        let text = input.parse().map_err(|error| {
            let said = "`workflow!` takes a path or a definition in quotes: \
                        `workflow!(\"workflows/deploy.yaml\")`";
            syn::Error::new(error.span(), said)
        })?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Call { module, text })
    }
}

impl Call {
    fn expand(&self) -> proc_macro2::TokenStream {
        let place = self.text.span().unwrap();
        let file = place
            .local_file()
            .map(|file| std::path::absolute(&file).unwrap_or(file));
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        let invocation = Invocation {
            text: self.text.value(),
            module: self
                .module
                .as_ref()
                .map(|name| name.to_string().trim_start_matches("r#").to_owned()),
            manifest: manifest.into(),
            file,
            file_name: place.file(),
            line: place.start().line(),
        };
        // The text shows the place itself; the literal need not be shown whole.
        invocation.expand().into_tokens(place.start().into())
    }
}
