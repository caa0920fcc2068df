//! A tool that the embedder forgot.
flow::workflow!("./shop.yaml");

struct Till;

impl shop::Tools for Till {
    async fn charge(&self, params: shop::ChargeParams) -> Result<shop::ChargeResult, flow::ToolError> {
        Ok(shop::ChargeResult {
            receipt: format!("{} cents", params.cents),
        })
    }
}

fn main() {}
