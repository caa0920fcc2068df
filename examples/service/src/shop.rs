//! What the workflow leaves to the program.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flow::{Call, ToolError, Value};

use crate::order::{ChargeParams, ChargeResult, ShipParams, Tools};

/// A shop with its books in a directory.
pub struct Shop {
    ledger: PathBuf,
}

impl Shop {
    pub fn open(place: impl AsRef<Path>) -> io::Result<Self> {
        fs::create_dir_all(&place)?;
        Ok(Shop {
            ledger: place.as_ref().join("ledger.txt"),
        })
    }

    /// Writes a line, unless the call has written it before its process died.
    fn book(&self, line: &str) -> io::Result<()> {
        let key = Call::current().map_or("by hand".to_owned(), |call| call.key);
        let line = format!("{key}\t{line}\n");
        let known = fs::read_to_string(&self.ledger).unwrap_or_default();
        if known.contains(&line) && Call::current().is_some() {
            return Ok(());
        }
        let mut ledger = File::options()
            .create(true)
            .append(true)
            .open(&self.ledger)?;
        ledger.write_all(line.as_bytes())?;
        ledger.sync_all()
    }
}

impl Tools for Shop {
    async fn charge(&self, params: ChargeParams) -> Result<ChargeResult, ToolError> {
        if params.cents > 100_000 {
            return Err(ToolError::new("that is more than the card allows"));
        }
        let receipt = format!("{} paid {} cents", params.customer, params.cents);
        self.book(&receipt)?;
        Ok(ChargeResult { receipt })
    }

    async fn ship(&self, params: ShipParams) -> Result<Value, ToolError> {
        self.book(&format!("a parcel for {}", params.customer))?;
        Ok(Value::Null)
    }
}
