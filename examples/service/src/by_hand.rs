//! One order, state by state.

use crate::order::{ChargeParams, Inputs, ShipParams, State, Tools, at};

/// Follows the definition as far as the tools allow, and says where that ends.
pub async fn fulfil(tools: &impl Tools, inputs: Inputs) -> State {
    let pay = at::Pay;
    let charge = ChargeParams {
        customer: inputs.customer.clone(),
        cents: inputs.cents,
    };
    let pack = match tools.charge(charge).await {
        Ok(_) => pay.success(),
        Err(error) => {
            eprintln!("not paid: {error}");
            return pay.state();
        }
    };
    let send = match std::fs::read_to_string(inputs.warehouse) {
        Ok(_) => pack.success(),
        Err(error) => {
            eprintln!("not packed: {error}");
            return pack.state();
        }
    };
    let customer = inputs.customer;
    if let Err(error) = tools.ship(ShipParams { customer }).await {
        eprintln!("not sent: {error}");
    }
    send.state()
}
