/// Takes an order from draft to delivery.
///
/// ```mermaid
/// flowchart TD
///   n_start(["start"])
///   n_0[/"<b>draft</b> prompt<br/>Accept the order of #123;#123; inputs.customer #125;#125;, #123;#123; i…"/]
///   n_1["<b>pay</b> mcp_call<br/>charge(customer#58; inputs.customer, cents#58; 100)"]
///   n_2["<b>deliver</b> shell<br/>deliver #45;#45;express=#123;#123; inputs.express #125;#125;"]
///   n_3["<b>delivered</b> mcp_call<br/>notify()"]
///   n_4["<b>cancelled</b> mcp_call<br/>notify()"]
///   n_end(["end"])
///   n_start --> n_0
///   n_0 -->|"confirmed = true"| n_1
///   n_0 -->|"otherwise"| n_4
///   n_1 -.->|"timeout or failure"| n_4
///   n_1 -->|"success"| n_2
///   n_2 -->|"“The parcel was handed over#46;”"| n_3
///   n_2 -->|"success"| n_2
///   n_2 -.->|"failure"| n_4
///   n_3 --> n_end
///   n_4 --> n_end
/// ```
#[allow(clippy::module_inception, reason = "the names are the definition's")]
pub mod order {
    use ::flow::__private::*;
    /// What a run of `order` is given.
    #[derive(Clone, PartialEq)]
    pub struct Inputs {
        /// Who ordered.
        pub customer: String,
        /// `items`.
        pub items: Vec<String>,
        /// `express`.
        pub express: bool,
        /// `address`.
        pub address: InputsAddress,
        /// For the payment service.
        pub token: Option<String>,
        /// `options`.
        pub options: Values,
    }
    impl Inputs {
        /// Says everything that the definition does not allow.
        ///
        /// # Errors
        ///
        /// Every fault.
        pub fn validate(&self) -> Result<(), Invalid> {
            validate(self)
        }
    }
    impl fmt::Debug for Inputs {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Inputs")
                .field("customer", &self.customer)
                .field("items", &self.items)
                .field("express", &self.express)
                .field("address", &self.address)
                .field("token", &Secret)
                .field("options", &self.options)
                .finish()
        }
    }
    impl Record for Inputs {
        const FIELDS: &'static [Field] = {
            use self::graph::{*, build::*};
            &[
                field("customer", Type::String).required().description("Who ordered."),
                field("items", Type::Array)
                    .required()
                    .validation(Validation {
                        min_items: Some(1),
                        item_type: Some(Type::String),
                        ..Validation::NONE
                    }),
                field("express", Type::Boolean).default(Literal::Bool(false)),
                field("address", Type::Object)
                    .required()
                    .validation(Validation {
                        properties: list(<InputsAddress as Record>::FIELDS),
                        ..Validation::NONE
                    }),
                field("token", Type::String)
                    .secret()
                    .description("For the payment service."),
                field("options", Type::Object)
                    .default(object(const { &[(text("gift"), Literal::Bool(true))] })),
            ]
        };
        fn to_values(&self) -> Values {
            values([
                ("customer", Part::to_value(&self.customer)),
                ("items", Part::to_value(&self.items)),
                ("express", Part::to_value(&self.express)),
                ("address", Part::to_value(&self.address)),
                ("token", Part::to_value(&self.token)),
                ("options", Part::to_value(&self.options)),
            ])
        }
        fn from_values(mut values: Values) -> Result<Self, Invalid> {
            Ok(Inputs {
                customer: read(&mut values, "customer")?,
                items: read(&mut values, "items")?,
                express: read(&mut values, "express")?,
                address: read(&mut values, "address")?,
                token: read(&mut values, "token")?,
                options: read(&mut values, "options")?,
            })
        }
    }
    impl Serialize for Inputs {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            serialize(self, to)
        }
    }
    impl<'de> Deserialize<'de> for Inputs {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            deserialize(from)
        }
    }
    /// The value of `address`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct InputsAddress {
        /// `street`.
        pub street: String,
        /// `zip`.
        pub zip: Option<String>,
    }
    impl InputsAddress {
        /// Says everything that the definition does not allow.
        ///
        /// # Errors
        ///
        /// Every fault.
        pub fn validate(&self) -> Result<(), Invalid> {
            validate(self)
        }
    }
    impl Record for InputsAddress {
        const FIELDS: &'static [Field] = {
            use self::graph::{*, build::*};
            &[
                field("street", Type::String).required(),
                field("zip", Type::String)
                    .validation(Validation {
                        pattern: Some(text("^[0-9]{5}$")),
                        ..Validation::NONE
                    }),
            ]
        };
        fn to_values(&self) -> Values {
            values([
                ("street", Part::to_value(&self.street)),
                ("zip", Part::to_value(&self.zip)),
            ])
        }
        fn from_values(mut values: Values) -> Result<Self, Invalid> {
            Ok(InputsAddress {
                street: read(&mut values, "street")?,
                zip: read(&mut values, "zip")?,
            })
        }
    }
    impl Serialize for InputsAddress {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            serialize(self, to)
        }
    }
    impl<'de> Deserialize<'de> for InputsAddress {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            deserialize(from)
        }
    }
    /// What a run of `order` gives.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Output {
        /// `receipt`.
        pub receipt: String,
    }
    impl Output {
        /// Says everything that the definition does not allow.
        ///
        /// # Errors
        ///
        /// Every fault.
        pub fn validate(&self) -> Result<(), Invalid> {
            validate(self)
        }
    }
    impl Record for Output {
        const FIELDS: &'static [Field] = {
            use self::graph::{*, build::*};
            &[field("receipt", Type::String).required()]
        };
        fn to_values(&self) -> Values {
            values([("receipt", Part::to_value(&self.receipt))])
        }
        fn from_values(mut values: Values) -> Result<Self, Invalid> {
            Ok(Output {
                receipt: read(&mut values, "receipt")?,
            })
        }
    }
    impl Serialize for Output {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            serialize(self, to)
        }
    }
    impl<'de> Deserialize<'de> for Output {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            deserialize(from)
        }
    }
    /// Parameters of the tool `charge`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChargeParams {
        /// `customer`.
        pub customer: String,
        /// `cents`.
        pub cents: i64,
    }
    impl ChargeParams {
        /// Says everything that the definition does not allow.
        ///
        /// # Errors
        ///
        /// Every fault.
        pub fn validate(&self) -> Result<(), Invalid> {
            validate(self)
        }
    }
    impl Record for ChargeParams {
        const FIELDS: &'static [Field] = {
            use self::graph::{*, build::*};
            &[
                field("customer", Type::String).required(),
                field("cents", Type::Integer)
                    .required()
                    .validation(Validation {
                        min: Some(1.0),
                        ..Validation::NONE
                    }),
            ]
        };
        fn to_values(&self) -> Values {
            values([
                ("customer", Part::to_value(&self.customer)),
                ("cents", Part::to_value(&self.cents)),
            ])
        }
        fn from_values(mut values: Values) -> Result<Self, Invalid> {
            Ok(ChargeParams {
                customer: read(&mut values, "customer")?,
                cents: read(&mut values, "cents")?,
            })
        }
    }
    impl Serialize for ChargeParams {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            serialize(self, to)
        }
    }
    impl<'de> Deserialize<'de> for ChargeParams {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            deserialize(from)
        }
    }
    /// The result of the tool `charge`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChargeResult {
        /// `receipt`.
        pub receipt: String,
    }
    impl ChargeResult {
        /// Says everything that the definition does not allow.
        ///
        /// # Errors
        ///
        /// Every fault.
        pub fn validate(&self) -> Result<(), Invalid> {
            validate(self)
        }
    }
    impl Record for ChargeResult {
        const FIELDS: &'static [Field] = {
            use self::graph::{*, build::*};
            &[field("receipt", Type::String).required()]
        };
        fn to_values(&self) -> Values {
            values([("receipt", Part::to_value(&self.receipt))])
        }
        fn from_values(mut values: Values) -> Result<Self, Invalid> {
            Ok(ChargeResult {
                receipt: read(&mut values, "receipt")?,
            })
        }
    }
    impl Serialize for ChargeResult {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            serialize(self, to)
        }
    }
    impl<'de> Deserialize<'de> for ChargeResult {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            deserialize(from)
        }
    }
    /// The tools that the definition leaves to the program; `tools` gives them to a host.
    pub trait Tools {
        /// Takes the money.
        fn charge(
            &self,
            params: ChargeParams,
        ) -> impl Future<Output = Result<ChargeResult, ToolError>> + Send;
        /// Tells the customer.
        fn notify(
            &self,
            params: Values,
        ) -> impl Future<Output = Result<Value, ToolError>> + Send;
    }
    pub use ::flow::Outcome;
    /// A state of the workflow `order`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum State {
        /// Waits until somebody has looked at it.
        Draft,
        /// `mcp_call`, line 40.
        Pay,
        /// `shell`, line 47.
        Deliver,
        /// `mcp_call`, line 53.
        Delivered,
        /// `mcp_call`, line 55.
        Cancelled,
    }
    impl State {
        /// Where the workflow `order` starts.
        pub const INITIAL: State = State::Draft;
        /// Every state, in the order of the definition.
        pub const ALL: &'static [State] = {
            use self::State::*;
            &[Draft, Pay, Deliver, Delivered, Cancelled]
        };
        const NAMES: &'static [&'static str] = &[
            "draft",
            "pay",
            "deliver",
            "delivered",
            "cancelled",
        ];
        /// Its name in the definition.
        #[must_use]
        pub const fn name(self) -> &'static str {
            Self::NAMES[self as usize]
        }
        /// The state of this name.
        #[must_use]
        pub fn from_name(name: &str) -> Option<State> {
            find(Self::ALL, Self::NAMES, name)
        }
        /// Whether the end can be reached from here without another state.
        #[must_use]
        pub const fn is_final(self) -> bool {
            ::core::matches!(self, Self::Delivered | Self::Cancelled)
        }
        /// The state that follows; `None` where the outcome ends everything, well or not.
        #[must_use]
        pub const fn next(self, outcome: Outcome) -> Option<State> {
            use self::{Outcome::*, State::*};
            Some(
                match (self, outcome) {
                    (Draft, Success | Failure | Timeout | Then | Else | Body | Done) => {
                        Cancelled
                    }
                    (Draft, Edge(0)) => Pay,
                    (Pay, Success) => Deliver,
                    (Pay, Failure | Timeout) => Cancelled,
                    (Deliver, Success) => Deliver,
                    (Deliver, Failure | Timeout) => Cancelled,
                    (Deliver, Edge(0)) => Delivered,
                    _ => return None,
                },
            )
        }
        /// Whether the outcome is the end, reached as meant.
        #[must_use]
        pub const fn completes(self, outcome: Outcome) -> bool {
            ::core::matches!(
                (self, outcome), (Self::Delivered, Outcome::Success) | (Self::Cancelled,
                Outcome::Success)
            )
        }
    }
    impl fmt::Display for State {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.pad(self.name())
        }
    }
    impl FromStr for State {
        type Err = UnknownState;
        fn from_str(name: &str) -> Result<State, UnknownState> {
            parse(State::ALL, State::NAMES, name)
        }
    }
    impl Serialize for State {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_str(self.name())
        }
    }
    impl<'de> Deserialize<'de> for State {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<State, D::Error> {
            deserialize_name(from)
        }
    }
    /// The states of the workflow `order` as types: a step that the definition does not allow does not compile.
    ///
    /// A state has a method for each outcome it can have. It returns the state that follows, or nothing where the outcome is the end.
    #[allow(missing_docs, reason = "named after the states and outcomes they stand for")]
    pub mod at {
        use ::flow::__private::states;
        states! {
            Draft {
                success: Cancelled,
                failure: Cancelled,
                timeout: Cancelled,
                /// When `confirmed` is as given.
                edge_0: Pay,
            }
            Pay {
                success: Deliver,
                failure: Cancelled,
                timeout: Cancelled,
            }
            Deliver {
                success: Deliver,
                failure: Cancelled,
                timeout: Cancelled,
                /// The parcel was handed over.
                edge_0: Delivered,
            }
            Delivered {
                success: (),
            }
            Cancelled {
                success: (),
            }
        }
    }
    /// The checked definition.
    pub static GRAPH: Graph = {
        use self::graph::{*, build::*};
        graph(
                "order",
                Form::States,
                Dialect::Jinja,
                body(
                    0,
                    const {
                        &[
                            node(
                                    "draft",
                                    34,
                                    Kind::Prompt(Prompt {
                                        message: Template::Text(
                                            jinja(
                                                "Accept the order of {{ inputs.customer }}, {{ inputs.items | length }} items to {{ inputs.address.street }} ({{ inputs.options }})?",
                                            ),
                                        ),
                                        kind: PromptKind::Confirm,
                                        options: None,
                                        validation: Validation::NONE,
                                    }),
                                    const {
                                        &[
                                            when(
                                                Condition::FieldEquals(
                                                    text("confirmed"),
                                                    Template::Literal(Literal::Bool(true)),
                                                ),
                                                1,
                                            ),
                                            always(4),
                                        ]
                                    },
                                )
                                .description("Waits until somebody has looked at it."),
                            declared(
                                    "pay",
                                    40,
                                    0,
                                    Template::Map(
                                        list(const {
                                            &[
                                                (
                                                    text("customer"),
                                                    Template::Expression(jinja("inputs.customer")),
                                                ),
                                                (text("cents"), Template::Literal(Literal::Int(100))),
                                            ]
                                        }),
                                    ),
                                    const { &[timeout(4), success(2), failure(4)] },
                                )
                                .timeout(60.0)
                                .writes(const {
                                    &[set(const { &[fixed("payment")] }, None)]
                                }),
                            node(
                                "deliver",
                                47,
                                Kind::Shell(
                                    shell(
                                            Template::Text(
                                                jinja("deliver --express={{ inputs.express }}"),
                                            ),
                                        )
                                        .env(const {
                                            &[
                                                (
                                                    text("TOKEN"),
                                                    Template::Expression(jinja("inputs.token | default('')")),
                                                ),
                                            ]
                                        })
                                        .output(OutputFormat::Text),
                                ),
                                const {
                                    &[
                                        judged("The parcel was handed over.", 3),
                                        success(2),
                                        failure(4),
                                    ]
                                },
                            ),
                            declared(
                                "delivered",
                                53,
                                1,
                                Template::Literal(object(&[])),
                                const { &[success(END)] },
                            ),
                            declared(
                                "cancelled",
                                55,
                                1,
                                Template::Literal(object(&[])),
                                const { &[success(END)] },
                            ),
                        ]
                    },
                ),
            )
            .description("Takes an order from draft to delivery.")
            .version("1.2.0")
            .inputs(<Inputs as Record>::FIELDS)
            .outputs(const {
                &[
                    Output {
                        field: field("receipt", Type::String).required(),
                        value: Template::Expression(jinja("state.payment.receipt")),
                    },
                ]
            })
            .tools(const {
                &[
                    ToolSignature {
                        name: text("charge"),
                        description: Some(text("Takes the money.")),
                        params: Some(
                            list(const {
                                &[
                                    field("customer", Type::String).required(),
                                    field("cents", Type::Integer)
                                        .required()
                                        .validation(Validation {
                                            min: Some(1.0),
                                            ..Validation::NONE
                                        }),
                                ]
                            }),
                        ),
                        returns: list(const {
                            &[field("receipt", Type::String).required()]
                        }),
                        result: None,
                        idempotent: Some(false),
                    },
                    ToolSignature {
                        name: text("notify"),
                        description: Some(text("Tells the customer.")),
                        params: None,
                        returns: list(&[]),
                        result: None,
                        idempotent: None,
                    },
                ]
            })
    };
    with_runtime! {
        /// The workflow as the engine knows it.
        pub enum Workflow {}
        impl ::flow::Workflow for Workflow {
            type Inputs = Inputs;
            type Output = Output;
            type State = State;
            fn graph() -> &'static Graph {
                &GRAPH
            }
        }
        /// A run of the workflow.
        pub type Run = ::flow::Run<Workflow>;
        /// Runs `order` to its end. What it does is recorded by the host before it is done.
        ///
        /// # Errors
        ///
        /// Inputs that are not as declared; why there is no output.
        pub fn run(inputs: Inputs, host: &Host) -> Boxed<'_, Result<Output, Error>> {
            Run::complete(inputs, host)
        }
        /// Starts a run in the background.
        ///
        /// # Errors
        ///
        /// Inputs that are not as declared; those of the host.
        pub fn start(inputs: Inputs, host: &Host) -> Boxed<'_, Result<Run, Error>> {
            Run::start(inputs, host)
        }
        /// Goes on with a run in the background; one that failed tries its failed step again.
        ///
        /// # Errors
        ///
        /// There is no such run of this workflow; those of the host.
        pub fn resume(id: RunId, host: &Host) -> Boxed<'_, Result<Run, Error>> {
            Run::resume(id, host)
        }
        /// The tools of the definition as a host calls them, for `Host::with_tools`.
        pub fn tools<T: Tools + Send + Sync + 'static>(with: T) -> Typed<T> {
            Typed::new(
                with,
                &["charge", "notify"],
                |with, call| {
                    Box::pin(async move {
                        match call.tool {
                            "charge" => call.told(with.charge(call.params()?).await),
                            "notify" => call.told(with.notify(call.params()?).await),
                            _ => call.unknown(),
                        }
                    })
                },
            )
        }
    }
}
