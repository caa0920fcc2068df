/// The workflow `odd:names-of-things`.
///
/// ```mermaid
/// flowchart TD
///   n_start(["start"])
///   n_0["<b>state</b> shell<br/>echo #123;#123; inputs.type #125;#125; #123;#123; inputs.self #125;#125; #123;#123; inp…"]
///   n_1["<b>none</b> shell<br/>make"]
///   n_2[/"<b>some</b> while<br/>state.n #lt; 2<br/>at most 3 times"\]
///   n_3["<b>success</b> set_state<br/>n #43;= 1"]
///   n_4{{"<b>outcome</b> condition<br/>state.n == 1"}}
///   n_5>"<b>edge</b> continue"]
///   n_6>"<b>3d</b> break"]
///   n_7["<b>done</b> shell<br/>make<br/>when state.n #gt; 1"]
///   n_8[["<b>v1-2</b> foreach<br/>#91;1, 2#93;<br/>at per item, 2 at once"]]
///   n_9(["<b>self</b> return<br/>state.n"])
///   n_end(["end"])
///   n_start --> n_0
///   n_0 --> n_1
///   n_1 --> n_2
///   n_2 -->|"body"| n_3
///   n_2 -->|"done"| n_7
///   n_3 --> n_4
///   n_4 -->|"then"| n_5
///   n_4 -->|"else"| n_6
///   n_5 --> n_2
///   n_6 --> n_7
///   n_7 --> n_8
///   n_8 --> n_9
///   n_9 --> n_end
///   subgraph task0["task at"]
///     direction TB
///     task0_start(["start"])
///     task0_0["<b>state</b> shell<br/>echo #123;#123; inputs.item #125;#125;"]
///     task0_end(["end"])
///     task0_start --> task0_0
///     task0_0 --> task0_end
///   end
///   subgraph task0_failed["when at fails – then the error is the result"]
///     direction TB
///     task0_failed_start(["start"])
///     task0_failed_0["<b>clean</b> shell<br/>make clean"]
///     task0_failed_end(["end"])
///     task0_failed_start --> task0_failed_0
///     task0_failed_0 --> task0_failed_end
///   end
///   subgraph failed["when a step fails – then the run fails"]
///     direction TB
///     failed_start(["start"])
///     failed_0["<b>report</b> shell<br/>echo failed"]
///     failed_end(["end"])
///     failed_start --> failed_0
///     failed_0 --> failed_end
///   end
///   n_8 -. each item .-> task0
/// ```
#[allow(clippy::module_inception, reason = "the names are the definition's")]
pub mod odd_names_of_things {
    use ::flow::__private::*;
    /// What a run gives: anything.
    pub type Output = Value;
    /// What a run of `odd:names-of-things` is given.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Inputs {
        /// `type`.
        pub r#type: String,
        /// `self`.
        pub self_: Option<i64>,
        /// `dry-run`.
        pub dry_run: bool,
        /// `2fa`.
        pub _2fa: Option<Values>,
        /// `ratio`.
        pub ratio: f64,
        /// `levels`.
        pub levels: Vec<i64>,
        /// `server`.
        pub server: InputsServer,
        /// `anything`.
        pub anything: Vec<Value>,
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
    impl Default for Inputs {
        fn default() -> Self {
            Inputs {
                r#type: "x".to_owned(),
                self_: Default::default(),
                dry_run: true,
                _2fa: Default::default(),
                ratio: 2.0,
                levels: ::std::vec![1, 2],
                server: InputsServer {
                    host: "localhost".to_owned(),
                    port: 80,
                    tls: Default::default(),
                },
                anything: {
                    #[allow(
                        unused_imports,
                        reason = "not every value needs all of them"
                    )]
                    use self::graph::{*, build::*};
                    open(const {
                        &array(const {
                            &[
                                Literal::Int(1),
                                string("a"),
                                object(const { &[(text("b"), Literal::Null)] }),
                            ]
                        })
                    })
                },
            }
        }
    }
    impl Record for Inputs {
        const FIELDS: &'static [Field] = {
            use self::graph::{*, build::*};
            &[
                field("type", Type::String).default(string("x")),
                field("self", Type::Integer),
                field("dry-run", Type::Boolean).default(Literal::Bool(true)),
                field("2fa", Type::Object),
                field("ratio", Type::Number).default(Literal::Int(2)),
                field("levels", Type::Array)
                    .default(array(const { &[Literal::Int(1), Literal::Int(2)] }))
                    .validation(Validation {
                        item_type: Some(Type::Integer),
                        ..Validation::NONE
                    }),
                field("server", Type::Object)
                    .default(object(const { &[(text("host"), string("localhost"))] }))
                    .validation(Validation {
                        properties: list(<InputsServer as Record>::FIELDS),
                        ..Validation::NONE
                    }),
                field("anything", Type::Array)
                    .default(
                        array(const {
                            &[
                                Literal::Int(1),
                                string("a"),
                                object(const { &[(text("b"), Literal::Null)] }),
                            ]
                        }),
                    ),
            ]
        };
        fn to_values(&self) -> Values {
            values([
                ("type", Part::to_value(&self.r#type)),
                ("self", Part::to_value(&self.self_)),
                ("dry-run", Part::to_value(&self.dry_run)),
                ("2fa", Part::to_value(&self._2fa)),
                ("ratio", Part::to_value(&self.ratio)),
                ("levels", Part::to_value(&self.levels)),
                ("server", Part::to_value(&self.server)),
                ("anything", Part::to_value(&self.anything)),
            ])
        }
        fn from_values(mut values: Values) -> Result<Self, Invalid> {
            Ok(Inputs {
                r#type: read(&mut values, "type")?,
                self_: read(&mut values, "self")?,
                dry_run: read(&mut values, "dry-run")?,
                _2fa: read(&mut values, "2fa")?,
                ratio: read(&mut values, "ratio")?,
                levels: read(&mut values, "levels")?,
                server: read(&mut values, "server")?,
                anything: read(&mut values, "anything")?,
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
    /// The value of `server`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct InputsServer {
        /// `host`.
        pub host: String,
        /// `port`.
        pub port: i64,
        /// `tls`.
        pub tls: Option<bool>,
    }
    impl InputsServer {
        /// Says everything that the definition does not allow.
        ///
        /// # Errors
        ///
        /// Every fault.
        pub fn validate(&self) -> Result<(), Invalid> {
            validate(self)
        }
    }
    impl Record for InputsServer {
        const FIELDS: &'static [Field] = {
            use self::graph::{*, build::*};
            &[
                field("host", Type::String).required(),
                field("port", Type::Integer).default(Literal::Int(80)),
                field("tls", Type::Boolean),
            ]
        };
        fn to_values(&self) -> Values {
            values([
                ("host", Part::to_value(&self.host)),
                ("port", Part::to_value(&self.port)),
                ("tls", Part::to_value(&self.tls)),
            ])
        }
        fn from_values(mut values: Values) -> Result<Self, Invalid> {
            Ok(InputsServer {
                host: read(&mut values, "host")?,
                port: read(&mut values, "port")?,
                tls: read(&mut values, "tls")?,
            })
        }
    }
    impl Serialize for InputsServer {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            serialize(self, to)
        }
    }
    impl<'de> Deserialize<'de> for InputsServer {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            deserialize(from)
        }
    }
    pub use ::flow::Outcome;
    /// A state of the workflow `odd:names-of-things`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum State {
        /// `shell`, line 20.
        State,
        /// `shell`, line 21.
        None,
        /// `while`, line 22.
        Some,
        /// `set_state`, line 27.
        Success,
        /// `condition`, line 28.
        Outcome,
        /// `continue`, line 28.
        Edge,
        /// `break`, line 28.
        S3d,
        /// `shell`, line 29.
        Done,
        /// `foreach`, line 30.
        V1_2,
        /// `return`, line 31.
        Self_,
    }
    impl State {
        /// Where the workflow `odd:names-of-things` starts.
        pub const INITIAL: State = State::State;
        /// Every state, in the order of the definition.
        pub const ALL: &'static [State] = {
            use self::State::*;
            &[State, None, Some, Success, Outcome, Edge, S3d, Done, V1_2, Self_]
        };
        const NAMES: &'static [&'static str] = &[
            "state",
            "none",
            "some",
            "success",
            "outcome",
            "edge",
            "3d",
            "done",
            "v1-2",
            "self",
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
            ::core::matches!(self, Self::Self_)
        }
        /// The state that follows; `None` where the outcome ends everything, well or not.
        #[must_use]
        pub const fn next(self, outcome: Outcome) -> Option<State> {
            use self::{Outcome::*, State::*};
            ::core::option::Option::Some(
                match (self, outcome) {
                    (State, self::Outcome::Success) => None,
                    (None, self::Outcome::Success) => Some,
                    (Some, Body) => Self::Success,
                    (Some, self::Outcome::Done) => Self::Done,
                    (Self::Success, self::Outcome::Success) => Outcome,
                    (Outcome, Then) => Self::Edge,
                    (Outcome, Else) => S3d,
                    (Self::Edge, self::Outcome::Success) => Some,
                    (S3d, self::Outcome::Success) => Self::Done,
                    (Self::Done, self::Outcome::Success | Failure | Timeout | Skip) => {
                        V1_2
                    }
                    (V1_2, self::Outcome::Success) => Self_,
                    _ => return ::core::option::Option::None,
                },
            )
        }
        /// Whether the outcome is the end, reached as meant.
        #[must_use]
        pub const fn completes(self, outcome: Outcome) -> bool {
            ::core::matches!((self, outcome), (Self::Self_, Outcome::Success))
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
    /// The states of the workflow `odd:names-of-things` as types: a step that the definition does not allow does not compile.
    ///
    /// A state has a method for each outcome it can have. It returns the state that follows, or nothing where the outcome is the end.
    #[allow(missing_docs, reason = "named after the states and outcomes they stand for")]
    pub mod at {
        use ::flow::__private::states;
        states! {
            State {
                success: None,
            }
            None {
                success: Some,
            }
            Some {
                body: Success,
                done: Done,
            }
            Success {
                success: Outcome,
            }
            Outcome {
                then: Edge,
                otherwise: S3d,
            }
            Edge {
                success: Some,
            }
            S3d {
                success: Done,
            }
            Done {
                success: V1_2,
                failure: V1_2,
                timeout: V1_2,
                skip: V1_2,
            }
            V1_2 {
                success: Self_,
            }
            Self_ {
                success: (),
            }
        }
    }
    /// What happens when the workflow `odd:names-of-things` fails.
    pub mod on_error {
        use ::flow::__private::*;
        pub use ::flow::Outcome;
        /// A state of the failure steps of the workflow `odd:names-of-things`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum State {
            /// `shell`, line 40.
            Report,
        }
        impl State {
            /// Where the failure steps of the workflow `odd:names-of-things` starts.
            pub const INITIAL: State = State::Report;
            /// Every state, in the order of the definition.
            pub const ALL: &'static [State] = {
                use self::State::*;
                &[Report]
            };
            const NAMES: &'static [&'static str] = &["report"];
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
                ::core::matches!(self, Self::Report)
            }
            /// The state that follows; `None` where the outcome ends everything, well or not.
            #[must_use]
            pub const fn next(self, outcome: Outcome) -> Option<State> {
                let _ = outcome;
                None
            }
            /// Whether the outcome is the end, reached as meant.
            #[must_use]
            pub const fn completes(self, outcome: Outcome) -> bool {
                ::core::matches!((self, outcome), (Self::Report, Outcome::Success))
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
        /// The states of the failure steps of the workflow `odd:names-of-things` as types: a step that the definition does not allow does not compile.
        ///
        /// A state has a method for each outcome it can have. It returns the state that follows, or nothing where the outcome is the end.
        #[allow(
            missing_docs,
            reason = "named after the states and outcomes they stand for"
        )]
        pub mod at {
            use ::flow::__private::states;
            states! {
                Report {
                    success: (),
                }
            }
        }
    }
    /// What is run once per item.
    pub mod tasks {
        /// The task `at`.
        pub mod at {
            use ::flow::__private::*;
            /// What the task `at` is given for an item.
            #[derive(Clone, Debug, PartialEq)]
            pub struct Inputs {
                /// `item`.
                pub item: i64,
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
            impl Record for Inputs {
                const FIELDS: &'static [Field] = {
                    use self::graph::{*, build::*};
                    &[field("item", Type::Integer).required()]
                };
                fn to_values(&self) -> Values {
                    values([("item", Part::to_value(&self.item))])
                }
                fn from_values(mut values: Values) -> Result<Self, Invalid> {
                    Ok(Inputs {
                        item: read(&mut values, "item")?,
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
            pub use ::flow::Outcome;
            /// A state of the task `at`.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum State {
                /// `shell`, line 37.
                State,
            }
            impl State {
                /// Where the task `at` starts.
                pub const INITIAL: State = State::State;
                /// Every state, in the order of the definition.
                pub const ALL: &'static [State] = {
                    use self::State::*;
                    &[State]
                };
                const NAMES: &'static [&'static str] = &["state"];
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
                    ::core::matches!(self, Self::State)
                }
                /// The state that follows; `None` where the outcome ends everything, well or not.
                #[must_use]
                pub const fn next(self, outcome: Outcome) -> Option<State> {
                    let _ = outcome;
                    None
                }
                /// Whether the outcome is the end, reached as meant.
                #[must_use]
                pub const fn completes(self, outcome: Outcome) -> bool {
                    ::core::matches!((self, outcome), (Self::State, Outcome::Success))
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
                fn deserialize<D: Deserializer<'de>>(
                    from: D,
                ) -> Result<State, D::Error> {
                    deserialize_name(from)
                }
            }
            /// The states of the task `at` as types: a step that the definition does not allow does not compile.
            ///
            /// A state has a method for each outcome it can have. It returns the state that follows, or nothing where the outcome is the end.
            #[allow(
                missing_docs,
                reason = "named after the states and outcomes they stand for"
            )]
            pub mod at {
                use ::flow::__private::states;
                states! {
                    State {
                        success: (),
                    }
                }
            }
            /// What happens when the task `at` fails.
            pub mod on_error {
                use ::flow::__private::*;
                pub use ::flow::Outcome;
                /// A state of the failure steps of the task `at`.
                #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
                pub enum State {
                    /// `shell`, line 35.
                    Clean,
                }
                impl State {
                    /// Where the failure steps of the task `at` starts.
                    pub const INITIAL: State = State::Clean;
                    /// Every state, in the order of the definition.
                    pub const ALL: &'static [State] = {
                        use self::State::*;
                        &[Clean]
                    };
                    const NAMES: &'static [&'static str] = &["clean"];
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
                        ::core::matches!(self, Self::Clean)
                    }
                    /// The state that follows; `None` where the outcome ends everything, well or not.
                    #[must_use]
                    pub const fn next(self, outcome: Outcome) -> Option<State> {
                        let _ = outcome;
                        None
                    }
                    /// Whether the outcome is the end, reached as meant.
                    #[must_use]
                    pub const fn completes(self, outcome: Outcome) -> bool {
                        ::core::matches!(
                            (self, outcome), (Self::Clean, Outcome::Success)
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
                    fn serialize<S: Serializer>(
                        &self,
                        to: S,
                    ) -> Result<S::Ok, S::Error> {
                        to.serialize_str(self.name())
                    }
                }
                impl<'de> Deserialize<'de> for State {
                    fn deserialize<D: Deserializer<'de>>(
                        from: D,
                    ) -> Result<State, D::Error> {
                        deserialize_name(from)
                    }
                }
                /// The states of the failure steps of the task `at` as types: a step that the definition does not allow does not compile.
                ///
                /// A state has a method for each outcome it can have. It returns the state that follows, or nothing where the outcome is the end.
                #[allow(
                    missing_docs,
                    reason = "named after the states and outcomes they stand for"
                )]
                pub mod at {
                    use ::flow::__private::states;
                    states! {
                        Clean {
                            success: (),
                        }
                    }
                }
            }
        }
    }
    /// The checked definition.
    pub static GRAPH: Graph = {
        use self::graph::{*, build::*};
        graph(
                "odd:names-of-things",
                Form::Steps,
                Dialect::Jinja,
                body(
                    0,
                    const {
                        &[
                            template(
                                "state",
                                20,
                                "echo {{ inputs.type }} {{ inputs.self }} {{ inputs['dry-run'] }} {{ inputs['2fa'] }} {{ inputs.ratio }} {{ inputs.levels }} {{ inputs.server }} {{ inputs.anything }}",
                                const { &[success(1)] },
                            ),
                            command("none", 21, "make", const { &[success(2)] }),
                            node(
                                "some",
                                22,
                                Kind::While {
                                    test: jinja("state.n < 2"),
                                    bound: Bound { times: 3, explicit: true },
                                },
                                const { &[again(3), done(7)] },
                            ),
                            node("success", 27, Kind::SetState, const { &[success(4)] })
                                .parent(2)
                                .writes(const {
                                    &[
                                        Write {
                                            path: StatePath {
                                                tier: Tier::Raw,
                                                segments: list(const { &[fixed("n")] }),
                                            },
                                            operation: Operation::Increment,
                                            value: Some(Template::Literal(Literal::Int(1))),
                                            beside: false,
                                        },
                                    ]
                                }),
                            node(
                                    "outcome",
                                    28,
                                    Kind::Condition {
                                        test: jinja("state.n == 1"),
                                    },
                                    const { &[then(5), otherwise(6)] },
                                )
                                .parent(2),
                            node(
                                    "edge",
                                    28,
                                    Kind::Jump(Jump::Continue),
                                    const { &[success(2)] },
                                )
                                .parent(4),
                            node(
                                    "3d",
                                    28,
                                    Kind::Jump(Jump::Break),
                                    const { &[success(7)] },
                                )
                                .parent(4),
                            command(
                                    "done",
                                    29,
                                    "make",
                                    const { &[success(8), failure(8), skip(8)] },
                                )
                                .when(jinja("state.n > 1")),
                            node(
                                "v1-2",
                                30,
                                Kind::FanOut(FanOut {
                                    items: Template::Literal(
                                        array(const { &[Literal::Int(1), Literal::Int(2)] }),
                                    ),
                                    task: 0,
                                    runner: Runner::Host,
                                    sequential: false,
                                    max_parallel: Some(2),
                                    on_child_error: OnChildError::Fail,
                                    collect_to: None,
                                    prompt: None,
                                }),
                                const { &[success(9)] },
                            ),
                            node(
                                "self",
                                31,
                                Kind::Return {
                                    value: Some(Template::Expression(jinja("state.n"))),
                                },
                                const { &[success(END)] },
                            ),
                        ]
                    },
                ),
            )
            .inputs(<Inputs as Record>::FIELDS)
            .state(const {
                &[
                    Initial {
                        tier: Tier::Raw,
                        name: text("n"),
                        ty: Type::Any,
                        value: Some(Template::Literal(Literal::Int(0))),
                    },
                ]
            })
            .tasks(const {
                &[
                    Task {
                        name: text("at"),
                        description: None,
                        inputs: Some(
                            list(const { &[field("item", Type::Integer).required()] }),
                        ),
                        state: list(&[]),
                        shares_state: false,
                        dialect: Dialect::Jinja,
                        body: body(
                            0,
                            const {
                                &[
                                    template(
                                        "state",
                                        37,
                                        "echo {{ inputs.item }}",
                                        const { &[success(END)] },
                                    ),
                                ]
                            },
                        ),
                        on_error: Some(TaskError {
                            returns: true,
                            body: body(
                                0,
                                const {
                                    &[
                                        command(
                                            "clean",
                                            35,
                                            "make clean",
                                            const { &[success(END)] },
                                        ),
                                    ]
                                },
                            ),
                        }),
                    },
                ]
            })
            .on_error(OnError {
                action: ErrorAction::Fail,
                collect_to: None,
                body: body(
                    0,
                    const {
                        &[
                            command(
                                "report",
                                40,
                                "echo failed",
                                const { &[success(END)] },
                            ),
                        ]
                    },
                ),
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
        /// Runs `odd:names-of-things` to its end. What it does is recorded by the host before it is done.
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
    }
}
