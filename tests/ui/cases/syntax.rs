//! Text that is not YAML at all.
flow::workflow!(mod broken = r#"
    steps: [
"#);

fn main() {
    let _: broken::Inputs;
}
