//! Steps that the definition does not allow.
flow::workflow!("./shop.yaml");

use shop::at;

fn main() {
    let _: at::GiveUp = at::Pay.success();
    at::Pay.done();
    at::GiveUp.failure();
}
