//! A file that is not there.
flow::workflow!("./no_such_file.yaml");

fn main() {
    let _: no_such_file::Output;
}
