//! A graph as an expression that a `static` can have.
//!
//! The expressions stand in a scope with everything of `flow::graph` and `flow::graph::build`. A
//! list stands in a `const` block of its own, because what its members are made by is called.

use flow_model::graph::By;
use flow_model::graph::{
    Agent, Body, Bound, Call, CallAnswer, CallTarget, Computed, Condition, Dependency, Dialect,
    Edge, ErrorAction, Expression, FanOut, Field, Form, Graph, Guard, Initial, Jump, Kind, Limits,
    Literal, Node, OnChildError, OnComputeError, OnError, OnResume, Operation, Output,
    OutputFormat, Prompt, PromptKind, Retry, Rule, Runner, Shell, StatePath, Target, Task,
    TaskError, Template, Text, Tier, ToolRef, ToolSignature, Type, Validation, Variable, Write,
};
use proc_macro2::{Ident, Literal as Token, TokenStream};
use quote::quote;

/// Something that can be written as an expression.
pub(crate) trait Emit {
    /// The expression.
    fn emit(&self) -> TokenStream;
}

/// The graph; `inputs` is the struct that has its input fields, if there is one.
pub(crate) fn graph(graph: &Graph, inputs: Option<&Ident>) -> TokenStream {
    // Named field by field so that a new one breaks the build.
    let Graph {
        name,
        description,
        version,
        form,
        dialect,
        inputs: fields,
        outputs,
        arguments,
        return_values,
        state,
        computed,
        tools,
        agents,
        tasks,
        body,
        on_error,
        on_resume,
        limits,
    } = graph;
    let said =
        |name: &str, text: &Option<Text>| setter(name, text.as_deref().map(|text| quote!(#text)));
    let description = said("description", description);
    let version = said("version", version);
    let inputs = match inputs {
        Some(ident) => Some(quote!(<#ident as Record>::FIELDS)),
        None => fields.as_deref().map(slice),
    };
    let inputs = setter("inputs", inputs);
    let outputs = setter_list("outputs", outputs);
    let arguments = setter_list("arguments", arguments);
    let return_values = setter_list("return_values", return_values);
    let state = setter_list("state", state);
    let computed = setter_list("computed", computed);
    let tools = setter_list("tools", tools);
    let agents = setter_list("agents", agents);
    let tasks = setter_list("tasks", tasks);
    let on_error = setter(
        "on_error",
        (*on_error != OnError::FAIL).then(|| on_error.emit()),
    );
    let on_resume = (*on_resume != OnResume::DEFAULT).then(|| on_resume.emit());
    let on_resume = setter("on_resume", on_resume);
    let limits = (*limits != Limits::of(*form)).then(|| limits.emit());
    let limits = setter("limits", limits);
    let (name, form, dialect, body) = (&**name, form.emit(), dialect.emit(), body.emit());
    quote! {
        graph(#name, #form, #dialect, #body)
        #description #version #inputs #outputs #arguments #return_values #state #computed
        #tools #agents #tasks #on_error #on_resume #limits
    }
}

/// A field; `nested` is the struct that has its properties, if there is one.
pub(crate) fn field(field: &Field, nested: Option<&Ident>) -> TokenStream {
    let properties = nested.map(|nested| quote!(list(<#nested as Record>::FIELDS)));
    field_with(field, properties)
}

fn field_with(field: &Field, properties: Option<TokenStream>) -> TokenStream {
    let (name, ty) = (&*field.name, field.ty.emit());
    let required = field.required.then(|| quote!(.required()));
    let secret = field.secret.then(|| quote!(.secret()));
    let default = setter("default", field.default.as_ref().map(Emit::emit));
    let description = field
        .description
        .as_deref()
        .map(|said| quote!(.description(#said)));
    let validation =
        (field.validation != Validation::NONE).then(|| validation(&field.validation, properties));
    let validation = setter("validation", validation);
    quote!(field(#name, #ty) #required #secret #default #description #validation)
}

/// A method call, if there is a value.
fn setter(name: &str, value: Option<TokenStream>) -> Option<TokenStream> {
    let name = quote::format_ident!("{name}");
    value.map(|value| quote!(.#name(#value)))
}

fn setter_list<T: Emit>(name: &str, items: &[T]) -> Option<TokenStream> {
    setter(name, (!items.is_empty()).then(|| slice(items)))
}

/// A `&'static` slice.
fn slice<T: Emit>(items: &[T]) -> TokenStream {
    match items.is_empty() {
        true => quote!(&[]),
        false => {
            let items = items.iter().map(Emit::emit);
            quote!(const { &[#(#items),*] })
        }
    }
}

fn list<T: Emit>(items: &[T]) -> TokenStream {
    let slice = slice(items);
    quote!(list(#slice))
}

fn string(text: &str) -> TokenStream {
    quote!(text(#text))
}

fn integer(value: impl Into<u64>) -> Token {
    Token::u64_unsuffixed(value.into())
}

fn float(value: f64) -> TokenStream {
    if value.is_nan() {
        quote!(f64::NAN)
    } else if value.is_infinite() {
        match value > 0.0 {
            true => quote!(f64::INFINITY),
            false => quote!(f64::NEG_INFINITY),
        }
    } else {
        let value = Token::f64_unsuffixed(value);
        quote!(#value)
    }
}

impl<T: Emit> Emit for Option<T> {
    fn emit(&self) -> TokenStream {
        match self {
            Some(value) => {
                let value = value.emit();
                quote!(Some(#value))
            }
            None => quote!(None),
        }
    }
}

impl<T: Emit> Emit for &[T] {
    fn emit(&self) -> TokenStream {
        list(self)
    }
}

impl Emit for Text {
    fn emit(&self) -> TokenStream {
        string(self)
    }
}

impl Emit for (Text, Template) {
    fn emit(&self) -> TokenStream {
        let (key, value) = (self.0.emit(), self.1.emit());
        quote!((#key, #value))
    }
}

impl Emit for (Text, Literal) {
    fn emit(&self) -> TokenStream {
        let (key, value) = (self.0.emit(), self.1.emit());
        quote!((#key, #value))
    }
}

impl Emit for f64 {
    fn emit(&self) -> TokenStream {
        float(*self)
    }
}

impl Emit for u64 {
    fn emit(&self) -> TokenStream {
        let value = integer(*self);
        quote!(#value)
    }
}

impl Emit for u32 {
    fn emit(&self) -> TokenStream {
        let value = integer(*self);
        quote!(#value)
    }
}

impl Emit for u16 {
    fn emit(&self) -> TokenStream {
        let value = integer(*self);
        quote!(#value)
    }
}

impl Emit for bool {
    fn emit(&self) -> TokenStream {
        quote!(#self)
    }
}

/// Enumerations without data, variant by variant.
macro_rules! words {
    ($($name:ident { $($variant:ident),+ })+) => {
        $(
            impl Emit for $name {
                fn emit(&self) -> TokenStream {
                    match self {
                        $($name::$variant => quote!($name::$variant),)+
                    }
                }
            }
        )+
    };
}

words! {
    Form { Steps, States }
    Dialect { Jinja, Js }
    Jump { Break, Continue }
    CallAnswer { Outputs, Response }
    By { Host, Server, Agent }
    OutputFormat { Result, Text, Lines, Json, KeyValue }
    PromptKind { Info, Confirm, Text, Choice }
    Tier { Raw, Computed, State }
    Operation { Set, Append, Increment, Merge }
    OnComputeError { Propagate, UseFallback, Ignore }
    Type { Any, String, Number, Integer, Boolean, Array, Object }
    ErrorAction { Fail, CheckpointAndFail, Continue, RetryWorkflow }
}

/// Structs, field by field.
macro_rules! structs {
    ($($name:ident { $($field:ident),+ })+) => {
        $(
            impl Emit for $name {
                fn emit(&self) -> TokenStream {
                    // Named field by field so that a new one breaks the build.
                    let $name { $($field),+ } = self;
                    $(let $field = Piece($field).emit();)+
                    quote!($name { $($field: #$field),+ })
                }
            }
        )+
    };
}

/// A field's value; lists are written as lists.
struct Piece<'a, T: ?Sized>(&'a T);

impl<T: Emit> Emit for Piece<'_, T> {
    fn emit(&self) -> TokenStream {
        self.0.emit()
    }
}

impl<T: Emit + Clone> Emit for std::borrow::Cow<'static, [T]> {
    fn emit(&self) -> TokenStream {
        list(self)
    }
}

structs! {
    Output { field, value }
    Variable { name, description, required }
    ToolSignature { name, description, params, returns, result, idempotent }
    Agent { name, instructions }
    Task { name, description, inputs, state, shares_state, dialect, body, on_error }
    TaskError { returns, body }
    OnError { action, collect_to, body }
    OnResume { retry_failed_steps, skip_completed_steps, reset_error_counts }
    Limits { max_steps, timeout, max_depth, max_parallel, max_state_bytes }
    Initial { tier, name, ty, value }
    Computed { name, from, from_list, reads, rule, on_error, fallback, validate, once }
    Dependency { tier, path }
    StatePath { tier, segments }
    FanOut { items, task, runner, sequential, max_parallel, on_child_error, collect_to, prompt }
    Call { target, inputs, variables, session, max_states, execution_timeout, save_on_success, shares_computed, answer }
    Prompt { message, kind, options, validation }
    Retry { attempts, delay, backoff, max_delay }
    Bound { times, explicit }
}

impl Emit for Body {
    fn emit(&self) -> TokenStream {
        match self.entry {
            Target::Node(entry) => {
                let (entry, nodes) = (entry.emit(), slice(&self.nodes));
                quote!(body(#entry, #nodes))
            }
            Target::Complete if self.nodes.is_empty() => quote!(Body::EMPTY),
            Target::Complete => {
                let nodes = list(&self.nodes);
                quote!(Body { nodes: #nodes, entry: Target::Complete })
            }
        }
    }
}

impl Emit for Node {
    fn emit(&self) -> TokenStream {
        let Node {
            id,
            description,
            line,
            parent,
            kind,
            needs_state,
            when,
            timeout,
            retry,
            fallback_value,
            writes,
            error_writes,
            edges,
        } = self;
        let made = made(id, line.emit(), kind, &slice(edges));
        let description = description
            .as_deref()
            .map(|said| quote!(.description(#said)));
        let parent = setter("parent", parent.map(|at| at.emit()));
        let needs_state = setter("needs_state", needs_state.as_deref().map(slice));
        let when = setter("when", when.as_ref().map(Emit::emit));
        let timeout = setter("timeout", timeout.map(float));
        let retry = setter("retry", retry.as_ref().map(Emit::emit));
        let fallback_value = setter("fallback_value", fallback_value.as_ref().map(Emit::emit));
        let writes = setter_list("writes", writes);
        let error_writes = setter_list("error_writes", error_writes);
        quote! {
            #made
            #description #parent #needs_state #when #timeout #retry #fallback_value
            #writes #error_writes
        }
    }
}

/// A node with nothing but an action and edges; the most frequent actions have short forms.
fn made(id: &str, line: TokenStream, kind: &Kind, edges: &TokenStream) -> TokenStream {
    match kind {
        Kind::Shell(shell) if shell.is_plain() => match &shell.command {
            Template::Literal(Literal::Str(text)) => {
                let text: &str = text;
                return quote!(command(#id, #line, #text, #edges));
            }
            Template::Text(text) if text.dialect == Dialect::Jinja => {
                let text: &str = &text.source;
                return quote!(template(#id, #line, #text, #edges));
            }
            _ => {}
        },
        Kind::Tool { tool, parameters } => {
            let parameters = parameters.emit();
            match tool {
                ToolRef::Builtin(name) => {
                    let name: &str = name;
                    return quote!(builtin(#id, #line, #name, #parameters, #edges));
                }
                ToolRef::Declared(index) => {
                    let index = index.emit();
                    return quote!(declared(#id, #line, #index, #parameters, #edges));
                }
                ToolRef::Host(_) => {}
            }
        }
        _ => {}
    }
    let kind = kind.emit();
    quote!(node(#id, #line, #kind, #edges))
}

impl Emit for Target {
    fn emit(&self) -> TokenStream {
        match self {
            Target::Node(index) => index.emit(),
            Target::Complete => quote!(END),
        }
    }
}

impl Emit for Edge {
    fn emit(&self) -> TokenStream {
        let to = self.to.emit();
        match &self.guard {
            Guard::Always => quote!(always(#to)),
            Guard::Success => quote!(success(#to)),
            Guard::Failure => quote!(failure(#to)),
            Guard::Timeout => quote!(timeout(#to)),
            Guard::InTime => quote!(in_time(#to)),
            Guard::Skip => quote!(skip(#to)),
            Guard::Then => quote!(then(#to)),
            Guard::Else => quote!(otherwise(#to)),
            Guard::Body => quote!(again(#to)),
            Guard::Done => quote!(done(#to)),
            Guard::When(condition) => {
                let condition = condition.emit();
                quote!(when(#condition, #to))
            }
            Guard::Judged(description) => {
                let description: &str = description;
                quote!(judged(#description, #to))
            }
        }
    }
}

impl Emit for Condition {
    fn emit(&self) -> TokenStream {
        match self {
            Condition::Always => quote!(Condition::Always),
            Condition::Success(value) => quote!(Condition::Success(#value)),
            Condition::TimedOut(value) => quote!(Condition::TimedOut(#value)),
            Condition::PatternMatch(pattern) => {
                let pattern = pattern.emit();
                quote!(Condition::PatternMatch(#pattern))
            }
            Condition::PatternNotMatch(pattern) => {
                let pattern = pattern.emit();
                quote!(Condition::PatternNotMatch(#pattern))
            }
            Condition::FieldEquals(field, value) => {
                let (field, value) = (field.emit(), value.emit());
                quote!(Condition::FieldEquals(#field, #value))
            }
            Condition::FieldContains(field, value) => {
                let (field, value) = (field.emit(), value.emit());
                quote!(Condition::FieldContains(#field, #value))
            }
            Condition::Expression(expression) => {
                let expression = expression.emit();
                quote!(Condition::Expression(#expression))
            }
            Condition::All(inner) => {
                let inner = list(inner);
                quote!(Condition::All(#inner))
            }
            Condition::Any(inner) => {
                let inner = list(inner);
                quote!(Condition::Any(#inner))
            }
            Condition::None(inner) => {
                let inner = list(inner);
                quote!(Condition::None(#inner))
            }
        }
    }
}

impl Emit for Kind {
    fn emit(&self) -> TokenStream {
        match self {
            Kind::Condition { test } => {
                let test = test.emit();
                quote!(Kind::Condition { test: #test })
            }
            Kind::While { test, bound } => {
                let (test, bound) = (test.emit(), bound.emit());
                quote!(Kind::While { test: #test, bound: #bound })
            }
            Kind::Loop { items } => {
                let items = items.emit();
                quote!(Kind::Loop { items: #items })
            }
            Kind::FanOut(fan_out) => {
                let fan_out = fan_out.emit();
                quote!(Kind::FanOut(#fan_out))
            }
            Kind::Jump(jump) => {
                let jump = jump.emit();
                quote!(Kind::Jump(#jump))
            }
            Kind::Goto { bound } => {
                let bound = bound.emit();
                quote!(Kind::Goto { bound: #bound })
            }
            Kind::Return { value } => {
                let value = value.emit();
                quote!(Kind::Return { value: #value })
            }
            Kind::SetState => quote!(Kind::SetState),
            Kind::Call(call) => {
                let call = call.emit();
                quote!(Kind::Call(#call))
            }
            Kind::Shell(shell) => {
                let shell = shell.emit();
                quote!(Kind::Shell(#shell))
            }
            Kind::Tool { tool, parameters } => {
                let (tool, parameters) = (tool.emit(), parameters.emit());
                quote!(Kind::Tool { tool: #tool, parameters: #parameters })
            }
            Kind::Prompt(prompt) => {
                let prompt = prompt.emit();
                quote!(Kind::Prompt(#prompt))
            }
            Kind::Wait { seconds, message } => {
                let (seconds, message) = (seconds.emit(), message.emit());
                quote!(Kind::Wait { seconds: #seconds, message: #message })
            }
            Kind::Delegate {
                instructions,
                agent,
                returns,
            } => {
                let (instructions, agent, returns) =
                    (instructions.emit(), agent.emit(), returns.emit());
                quote!(Kind::Delegate { instructions: #instructions, agent: #agent, returns: #returns })
            }
        }
    }
}

impl Emit for Shell {
    fn emit(&self) -> TokenStream {
        let Shell {
            command,
            env,
            working_directory,
            output,
            by,
            reason,
            exit_fails,
        } = self;
        let command = command.emit();
        let env = setter_list("env", env);
        let directory = setter(
            "working_directory",
            working_directory.as_ref().map(Emit::emit),
        );
        let output = (*output != OutputFormat::Result).then(|| output.emit());
        let output = setter("output", output);
        let by = setter("by", (*by != By::Host).then(|| by.emit()));
        let reason = setter("reason", reason.as_ref().map(Emit::emit));
        let exit_fails = setter("exit_fails", exit_fails.then(|| quote!(true)));
        quote!(shell(#command) #env #directory #output #by #reason #exit_fails)
    }
}

impl Emit for Runner {
    fn emit(&self) -> TokenStream {
        match self {
            Runner::Host => quote!(Runner::Host),
            Runner::SubAgent => quote!(Runner::SubAgent),
            Runner::Agent(name) => {
                let name = name.emit();
                quote!(Runner::Agent(#name))
            }
        }
    }
}

impl Emit for OnChildError {
    fn emit(&self) -> TokenStream {
        match self {
            OnChildError::Fail => quote!(OnChildError::Fail),
            OnChildError::Continue => quote!(OnChildError::Continue),
            OnChildError::RetryFailed(times) => {
                let times = times.emit();
                quote!(OnChildError::RetryFailed(#times))
            }
            OnChildError::FailAll => quote!(OnChildError::FailAll),
        }
    }
}

impl Emit for CallTarget {
    fn emit(&self) -> TokenStream {
        match self {
            CallTarget::Name(name) => {
                let name = name.emit();
                quote!(CallTarget::Name(#name))
            }
            CallTarget::Definition(definition) => {
                let definition = definition.emit();
                quote!(CallTarget::Definition(#definition))
            }
        }
    }
}

impl Emit for ToolRef {
    fn emit(&self) -> TokenStream {
        match self {
            ToolRef::Builtin(name) => {
                let name = name.emit();
                quote!(ToolRef::Builtin(#name))
            }
            ToolRef::Declared(index) => {
                let index = index.emit();
                quote!(ToolRef::Declared(#index))
            }
            ToolRef::Host(name) => {
                let name = name.emit();
                quote!(ToolRef::Host(#name))
            }
        }
    }
}

impl Emit for Template {
    fn emit(&self) -> TokenStream {
        match self {
            Template::Literal(Literal::Str(text)) => {
                let text: &str = text;
                quote!(fixed(#text))
            }
            Template::Literal(literal) => {
                let literal = literal.emit();
                quote!(Template::Literal(#literal))
            }
            Template::Expression(expression) => {
                let expression = expression.emit();
                quote!(Template::Expression(#expression))
            }
            Template::Text(text) => {
                let text = text.emit();
                quote!(Template::Text(#text))
            }
            Template::Command(text) => {
                let text = text.emit();
                quote!(Template::Command(#text))
            }
            Template::Pattern(text) => {
                let text = text.emit();
                quote!(Template::Pattern(#text))
            }
            Template::List(items) => {
                let items = list(items);
                quote!(Template::List(#items))
            }
            Template::Map(entries) => {
                let entries = list(entries);
                quote!(Template::Map(#entries))
            }
        }
    }
}

impl Emit for Expression {
    fn emit(&self) -> TokenStream {
        let source: &str = &self.source;
        match self.dialect {
            Dialect::Jinja => quote!(jinja(#source)),
            Dialect::Js => quote!(js(#source)),
        }
    }
}

impl Emit for Literal {
    fn emit(&self) -> TokenStream {
        match self {
            Literal::Null => quote!(Literal::Null),
            Literal::Bool(value) => quote!(Literal::Bool(#value)),
            Literal::Int(value) => {
                let value = Token::i64_unsuffixed(*value);
                quote!(Literal::Int(#value))
            }
            Literal::Float(value) => {
                let value = float(*value);
                quote!(Literal::Float(#value))
            }
            Literal::Str(text) => {
                let text: &str = text;
                quote!(string(#text))
            }
            Literal::List(items) => {
                let items = slice(items);
                quote!(array(#items))
            }
            Literal::Map(entries) => {
                let entries = slice(entries);
                quote!(object(#entries))
            }
        }
    }
}

impl Emit for Write {
    fn emit(&self) -> TokenStream {
        let value = self.value.emit();
        let beside = self.beside;
        if self.path.tier == Tier::Raw && self.operation == Operation::Set && !beside {
            let segments = slice(&self.path.segments);
            return quote!(set(#segments, #value));
        }
        let (path, operation) = (self.path.emit(), self.operation.emit());
        quote!(Write { path: #path, operation: #operation, value: #value, beside: #beside })
    }
}

impl Emit for Rule {
    fn emit(&self) -> TokenStream {
        match self {
            Rule::Transform(text) => {
                let text = text.emit();
                quote!(Rule::Transform(#text))
            }
            Rule::Body(text) => {
                let text = text.emit();
                quote!(Rule::Body(#text))
            }
            Rule::Value(value) => {
                let value = value.emit();
                quote!(Rule::Value(#value))
            }
        }
    }
}

impl Emit for Field {
    fn emit(&self) -> TokenStream {
        field_with(self, None)
    }
}

impl Emit for Validation {
    fn emit(&self) -> TokenStream {
        match *self == Validation::NONE {
            true => quote!(Validation::NONE),
            false => validation(self, None),
        }
    }
}

/// The rules that are given; `properties` stands for the written ones.
fn validation(rules: &Validation, properties: Option<TokenStream>) -> TokenStream {
    let Validation {
        pattern,
        min_length,
        max_length,
        one_of,
        min,
        max,
        min_items,
        max_items,
        item_type,
        required_keys,
        properties: written,
        error_message,
    } = rules;
    let mut out = TokenStream::new();
    let mut given = |name: &str, value: Option<TokenStream>| {
        if let Some(value) = value {
            let name = quote::format_ident!("{name}");
            out.extend(quote!(#name: #value,));
        }
    };
    fn some<T: Emit>(value: &Option<T>) -> Option<TokenStream> {
        value.as_ref().map(|_| value.emit())
    }
    fn full<T: Emit>(items: &[T]) -> Option<TokenStream> {
        (!items.is_empty()).then(|| list(items))
    }
    given("pattern", some(pattern));
    given("min_length", some(min_length));
    given("max_length", some(max_length));
    given("one_of", full(one_of));
    given("min", some(min));
    given("max", some(max));
    given("min_items", some(min_items));
    given("max_items", some(max_items));
    given("item_type", some(item_type));
    given("required_keys", full(required_keys));
    given("properties", properties.or_else(|| full(written)));
    given("error_message", some(error_message));
    quote!(Validation { #out ..Validation::NONE })
}
