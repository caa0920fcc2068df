//! A state that was left.
flow::workflow!("./shop.yaml");

use shop::at;

fn main() {
    let pay = at::Pay;
    let _send: at::Send = pay.success();
    let _give_up: at::GiveUp = pay.failure();
}
