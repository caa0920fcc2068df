//! A path without quotes.
flow::workflow!(workflows/deploy.yaml);

fn main() {}
