//! Compiles the built-in workflows.

fn main() -> Result<(), flow_codegen::Fault> {
    flow_codegen::compile_dir("workflows", "builtin.rs")
}
