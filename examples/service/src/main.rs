//! A shop that drives its own workflow by hand: `cargo run -- '{"customer": "Ada", "cents": 1200}'`.

use std::error::Error;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

flow::workflow!("workflows/order.yaml");

use order::{ChargeParams, ChargeResult, Inputs, ShipParams, State, Tools, at};

/// What the workflow leaves to this program.
struct Shop;

impl Tools for Shop {
    async fn charge(&self, params: ChargeParams) -> Result<ChargeResult, flow::ToolError> {
        if params.cents > 100_000 {
            return Err(flow::ToolError::new("that is more than the card allows"));
        }
        Ok(ChargeResult {
            receipt: format!("{} paid {} cents", params.customer, params.cents),
        })
    }

    async fn ship(&self, params: ShipParams) -> Result<flow::Value, flow::ToolError> {
        println!("a parcel for {}", params.customer);
        Ok(flow::Value::Null)
    }
}

/// One order, state by state. A step that the definition does not allow would not compile.
async fn fulfil(tools: &impl Tools, inputs: Inputs) -> State {
    let Inputs { customer, cents } = inputs;
    let charge = ChargeParams {
        customer: customer.clone(),
        cents,
    };
    let send = match tools.charge(charge).await {
        Ok(result) => {
            println!("{}", result.receipt);
            at::Pay.success()
        }
        Err(error) => {
            println!("not paid: {error}");
            return at::Pay.failure().state();
        }
    };
    match tools.ship(ShipParams { customer }).await {
        Ok(_) => send.success().state(),
        Err(error) => {
            println!("not sent: {error}");
            send.failure().state()
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1);
    let given = given.unwrap_or_else(|| r#"{"customer": "Ada", "cents": 1200}"#.to_owned());
    let inputs: Inputs = serde_json::from_str(&given)?;
    // The tools above never wait, so no runtime is needed.
    let mut order = pin!(fulfil(&Shop, inputs));
    match order.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(state) => println!("the order is {state}"),
        Poll::Pending => println!("the order waits"),
    }
    Ok(())
}
