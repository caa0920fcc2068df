//! Values that agents keep under a key, beyond any run.

use rusqlite::{OptionalExtension, params};

use super::{Error, Journal, Receipt, body};

impl Journal {
    /// Keeps a JSON text under a key, in the place of what was there.
    pub fn remember(&self, key: &str, value: &[u8], at: u64) -> Receipt<()> {
        let (key, value) = (key.to_owned(), value.to_vec());
        let fits = body::fits(&value);
        let store = std::sync::Arc::clone(&self.store);
        self.writer.submit(move |connection| {
            fits?;
            let insert = || {
                let insert = "INSERT INTO memory (key, value, updated_at) VALUES (?1, ?2, ?3)
                              ON CONFLICT (key) DO UPDATE SET
                                  value = excluded.value, updated_at = excluded.updated_at";
                let mut statement = connection.prepare_cached(insert)?;
                statement.execute(params![key, value, at])
            };
            insert().map(drop).map_err(|error| store.error(error))
        })
    }

    /// What is kept under a key.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn recall(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.read(|connection| {
            let find = "SELECT value FROM memory WHERE key = ?1";
            let mut statement = connection.prepare_cached(find)?;
            statement.query_row([key], |row| row.get(0)).optional()
        })
    }

    /// Gives up what is kept under a key. Says whether there was something.
    pub fn forget(&self, key: &str) -> Receipt<bool> {
        let key = key.to_owned();
        self.write(move |connection| {
            let mut statement = connection.prepare_cached("DELETE FROM memory WHERE key = ?1")?;
            statement.execute([key]).map(|deleted| deleted > 0)
        })
    }

    /// The keys that begin like this, in order.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn memory_keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        self.read(|connection| {
            // From the prefix on in order; those that begin with it come first.
            let find = "SELECT key FROM memory WHERE key >= ?1 ORDER BY key";
            let mut statement = connection.prepare_cached(find)?;
            let mut rows = statement.query([prefix])?;
            let mut keys = Vec::new();
            while let Some(row) = rows.next()? {
                let key: String = row.get(0)?;
                if !key.starts_with(prefix) {
                    break;
                }
                keys.push(key);
            }
            Ok(keys)
        })
    }
}
