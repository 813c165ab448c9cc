//! Reads a table of both databases in the order of its keys, and finds the first difference.

use tokio::sync::watch;

use super::rows::Rows;
use super::side::Side;
use super::tables::Table;
use super::{MoveError, Progress, row};

/// Rows between two reports of progress.
const REPORT_ROWS: u64 = 1000;

pub async fn compare(
    source: &mut Side,
    target: &mut Side,
    table: &Table,
    progress: &watch::Sender<Progress>,
) -> Result<(), MoveError> {
    let mut originals = Rows::read(source, table, None).await?;
    let mut copies = Rows::read(target, table, None).await?;
    let mut unreported = 0;
    loop {
        let both = tokio::try_join!(originals.advance(), copies.advance())?;
        if both == (false, false) {
            break;
        }
        let difference = match both {
            (true, true) => {
                let (original, copy) = (originals.row(), copies.row());
                row::difference(original, copy, &table.columns)
                    .map(|column| differing(original, copy, table, &column.name))
            }
            (true, false) => Some(only_in("source", originals.row(), table)),
            (false, _) => Some(only_in("target", copies.row(), table)),
        };
        if let Some(difference) = difference {
            return Err(MoveError::Differs {
                table: table.name.clone(),
                difference,
            });
        }
        unreported += 1;
        if unreported == REPORT_ROWS {
            progress.send_modify(|shown| shown.done += unreported);
            unreported = 0;
        }
    }
    progress.send_modify(|shown| shown.done += unreported);
    Ok(())
}

fn differing(original: &[u8], copy: &[u8], table: &Table, column: &str) -> String {
    let keys = [original, copy].map(|row| row::describe(row, table.key()));
    match keys {
        [one, other] if one == other => format!("{column} of the row with {one}"),
        [one, other] => {
            format!("where the source has the row with {one}, the target has that with {other}")
        }
    }
}

fn only_in(side: &str, row: &[u8], table: &Table) -> String {
    let key = row::describe(row, table.key());
    format!("the row with {key} is in the {side} alone")
}
