//! A shop that runs its own workflow.
//!
//! * `service order '{"customer": "Ada", "cents": 1200}'` takes an order: the engine runs it, and
//!   records what it does in `shop/` before it does it.
//! * `service go-on` goes on with the orders that were under way when the program was stopped.
//! * `service by-hand '{"customer": "Ada", "cents": 1200}'` takes an order without the engine: the
//!   states of the definition are types, and a step that it does not allow would not compile.

mod by_hand;
mod shop;

use std::error::Error;
use std::process::ExitCode;

use flow::Host;

use shop::Shop;

flow::workflow!("workflows/order.yaml");

/// Where the shop keeps its books, and flow its journal.
const PLACE: &str = "shop";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let shop = Shop::open(PLACE)?;
    match words[..] {
        ["order", inputs] => {
            let inputs: order::Inputs = serde_json::from_str(inputs)?;
            let host = Host::open(PLACE)?.with_tools(order::tools(shop));
            let output = order::run(inputs, &host).await?;
            println!("{}; {}", output.receipt, output.parcel);
        }
        ["go-on"] => {
            let host = Host::open(PLACE)?.with_tools(order::tools(shop));
            for run in order::Run::unfinished(&host)? {
                println!("{} goes on at {}", run.id(), run.state()?);
                let output = run.wait().await?;
                println!("{}; {}", output.receipt, output.parcel);
            }
        }
        ["by-hand", inputs] => {
            let inputs: order::Inputs = serde_json::from_str(inputs)?;
            println!("the order ends at {}", by_hand::fulfil(&shop, inputs).await);
        }
        _ => return Err("say `order INPUTS`, `go-on` or `by-hand INPUTS`".into()),
    }
    Ok(())
}
