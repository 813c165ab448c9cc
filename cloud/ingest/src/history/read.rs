//! Reading events from files. A file may be replaced while it is read: then it is missing, and what
//! is left is read from the one in its place.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use hub_base::db::{Direction, MAX_COUNT, Slice};
use hub_base::error::Result;
use hub_core::EventLog;
use hub_history::{EventHead, File, GroupIds, HistoryError, StoredEvent};
use hub_protocol::TenantUuid;

use super::manifest::{self, FileRow};
use super::unreadable;
use crate::batches::Wanted;
use crate::place::{At, Found, Place, Row};

/// Files that one statement finds.
const FILES: i64 = 64;
/// How often a file may be replaced before a read of it is given up.
const MAX_REPLACED: usize = 5;

/// The failure of a read of one file.
enum Failure {
    /// Another file is in its place.
    Replaced,
    Failed(hub_base::error::Error),
}

async fn failure(log: &EventLog, file: &File, error: HistoryError) -> Failure {
    if matches!(error, HistoryError::Missing(_)) {
        let is_current = async {
            let mut conn = log.db.read().await?;
            manifest::is_current(&mut conn, file).await
        };
        match is_current.await {
            Ok(false) => return Failure::Replaced,
            Ok(true) => {}
            Err(error) => return Failure::Failed(error),
        }
    }
    Failure::Failed(unreadable(log, error))
}

/// Goes through the files with ids between these.
struct Files<'a> {
    log: &'a EventLog,
    wanted: Wanted,
    direction: Direction,
    found: std::vec::IntoIter<FileRow>,
    is_last: bool,
    replaced: usize,
}

impl<'a> Files<'a> {
    fn new(log: &'a EventLog, wanted: &Wanted, direction: Direction) -> Self {
        Self {
            log,
            wanted: *wanted,
            direction,
            found: Vec::new().into_iter(),
            is_last: false,
            replaced: 0,
        }
    }

    async fn next(&mut self) -> Result<Option<FileRow>> {
        if let Some(file) = self.found.next() {
            return Ok(Some(file));
        }
        if self.is_last || self.wanted.first_id > self.wanted.last_id {
            return Ok(None);
        }
        let ids = (self.wanted.first_id, self.wanted.last_id);
        let files = manifest::files(
            &mut self.log.db.read().await?,
            self.wanted.tenant_uuid,
            ids,
            self.wanted.hub_uuid,
            self.direction,
            FILES,
        )
        .await?;
        self.is_last = i64::try_from(files.len()).is_ok_and(|files| files < FILES);
        self.found = files.into_iter();
        Ok(self.found.next())
    }

    /// All ids up to this one are done.
    fn pass(&mut self, id: i64) {
        match self.direction {
            Direction::Ascending => self.wanted.first_id = id.saturating_add(1),
            Direction::Descending => self.wanted.last_id = id.saturating_sub(1),
        }
    }

    fn pass_file(&mut self, file: &File) {
        self.pass(match self.direction {
            Direction::Ascending => file.last_id,
            Direction::Descending => file.first_id,
        });
    }

    /// Finds the files again that were not passed, unless that happens too often.
    fn again(&mut self, file: &File) -> Result<()> {
        self.replaced += 1;
        if self.replaced > MAX_REPLACED {
            return Err(unreadable(self.log, HistoryError::Missing(file.path())));
        }
        (self.found, self.is_last) = (Vec::new().into_iter(), false);
        Ok(())
    }
}

/// Goes through the wanted events in the order of their ids, until `visit` breaks.
pub async fn walk(
    log: &EventLog,
    wanted: &Wanted,
    direction: Direction,
    visit: &mut (impl FnMut(Found<'_>) -> ControlFlow<()> + Send),
) -> Result<ControlFlow<()>> {
    let mut files = Files::new(log, wanted, direction);
    while let Some(row) = files.next().await? {
        let file = Arc::new(row.file());
        let mut reached = None;
        let mut note = |found: Found<'_>| {
            reached = Some(found.ble_event_id);
            visit(found)
        };
        match walk_file(log, &files.wanted, &file, direction, &mut note).await {
            Ok(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
            Ok(ControlFlow::Continue(())) => files.pass_file(&file),
            Err(Failure::Failed(error)) => return Err(error),
            Err(Failure::Replaced) => {
                if let Some(reached) = reached {
                    files.pass(reached);
                }
                files.again(&file)?;
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

async fn walk_file(
    log: &EventLog,
    wanted: &Wanted,
    file: &Arc<File>,
    direction: Direction,
    visit: &mut (impl FnMut(Found<'_>) -> ControlFlow<()> + Send),
) -> Result<ControlFlow<()>, Failure> {
    let groups = match log.history.groups(file).await {
        Ok(groups) => groups,
        Err(error) => return Err(failure(log, file, error).await),
    };
    let overlaps = |ids: &GroupIds| ids.first <= wanted.last_id && wanted.first_id <= ids.last;
    let groups = groups.iter().enumerate().filter(|(_, ids)| overlaps(ids));
    let mut groups: Vec<usize> = groups.map(|(group, _)| group).collect();
    if direction == Direction::Descending {
        groups.reverse();
    }
    for group in groups {
        let device = wanted.device_instance_id;
        let heads = match log.history.heads(file, group, device).await {
            Ok(heads) => heads,
            Err(error) => return Err(failure(log, file, error).await),
        };
        let mut visit_one = |head: &EventHead| match admits(wanted, head) {
            true => visit(Found {
                ble_event_id: head.ble_event_id,
                hub_uuid: head.hub_uuid,
                device_instance_id: head.device_instance_id,
                processing_status: head.processing_status,
                observation_id: head.observation_id,
                event_bytes: head.event_bytes,
                at: At::File {
                    file,
                    group,
                    row: head.row,
                },
            }),
            false => ControlFlow::Continue(()),
        };
        let walked = match direction {
            Direction::Ascending => heads.iter().try_for_each(&mut visit_one),
            Direction::Descending => heads.iter().rev().try_for_each(&mut visit_one),
        };
        if walked.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn admits(wanted: &Wanted, head: &EventHead) -> bool {
    wanted
        .hub_uuid
        .is_none_or(|hub_uuid| head.hub_uuid == hub_uuid)
        && wanted.admits(
            head.ble_event_id,
            head.processing_status,
            head.device_instance_id,
            head.observation_id,
        )
}

/// How many of the wanted events are in a file, if that is known without reading it.
fn known_events(wanted: &Wanted, row: &FileRow) -> Option<i64> {
    let is_whole = wanted.first_id <= row.first_id
        && row.last_id <= wanted.last_id
        && wanted.device_instance_id.is_none()
        && wanted.are_whole_batches();
    is_whole.then_some(row.events_of_hub)
}

/// Where one page of the wanted events is, and how many there are, counted up to [`MAX_COUNT`].
pub async fn places(
    log: &EventLog,
    wanted: &Wanted,
    direction: Direction,
    Slice { size, offset }: Slice,
) -> Result<(Vec<Place>, i64)> {
    let mut files = Files::new(log, wanted, direction);
    let (mut places, mut total) = (Vec::new(), 0);
    let is_full = |places: &Vec<Place>| i64::try_from(places.len()).is_ok_and(|len| len >= size);
    while let Some(row) = files.next().await? {
        let file = Arc::new(row.file());
        let known = known_events(&files.wanted, &row);
        let (before, places_before) = (total, places.len());
        if let Some(events) = known
            && (is_full(&places) || total + events <= offset)
        {
            total += events;
            files.pass_file(&file);
        } else {
            let mut visit = |found: Found<'_>| {
                if total >= offset && !is_full(&places) {
                    places.push(found.place());
                }
                total += 1;
                match total < MAX_COUNT && !(known.is_some() && is_full(&places)) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            };
            match walk_file(log, &files.wanted, &file, direction, &mut visit).await {
                Ok(_) => {
                    total = known.map_or(total, |events| before + events);
                    files.pass_file(&file);
                }
                Err(Failure::Failed(error)) => return Err(error),
                Err(Failure::Replaced) => {
                    total = before;
                    places.truncate(places_before);
                    files.again(&file)?;
                }
            }
        }
        if total >= MAX_COUNT {
            break;
        }
    }
    let total = total.min(MAX_COUNT);
    let most = usize::try_from((total - offset).max(0)).unwrap_or(0);
    places.truncate(most);
    Ok((places, total))
}

/// The first id of the wanted events, which are narrowed by their ids alone, and how many there
/// are. Counting ends with the file that makes them `limit` or more.
pub async fn count(log: &EventLog, wanted: &Wanted, limit: i64) -> Result<(Option<i64>, i64)> {
    let mut first = None;
    let mut note = |found: Found<'_>| {
        first = Some(found.ble_event_id);
        ControlFlow::Break(())
    };
    if walk(log, wanted, Direction::Ascending, &mut note)
        .await?
        .is_continue()
    {
        return Ok((None, 0));
    }
    let mut files = Files::new(log, wanted, Direction::Ascending);
    let mut events = 0;
    while events < limit
        && let Some(row) = files.next().await?
    {
        let file = row.file();
        match known_events(&files.wanted, &row) {
            Some(known) => events += known,
            None => {
                let within = Wanted {
                    first_id: files.wanted.first_id.max(row.first_id),
                    last_id: files.wanted.last_id.min(row.last_id),
                    ..*wanted
                };
                let mut add = |_: Found<'_>| {
                    events += 1;
                    ControlFlow::Continue(())
                };
                let _ = walk(log, &within, Direction::Ascending, &mut add).await?;
            }
        }
        files.pass_file(&file);
    }
    Ok((first, events))
}

/// Where the events with these ids are, which are in their order.
pub async fn locate(log: &EventLog, tenant_uuid: TenantUuid, ids: &[i64]) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    let mut rest = ids;
    while let (Some(&first), Some(&last)) = (rest.first(), rest.last()) {
        let wanted = Wanted {
            first_id: first,
            last_id: last,
            ..Wanted::all_of(tenant_uuid)
        };
        let Some(file) = Files::new(log, &wanted, Direction::Ascending)
            .next()
            .await?
        else {
            break;
        };
        let end = rest.partition_point(|id| *id <= file.last_id);
        let (here, after) = rest.split_at(end);
        rest = after;
        let (Some(&first_id), Some(&last_id)) = (here.first(), here.last()) else {
            // The first id is before the file: there is no such event.
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        let within = Wanted {
            first_id,
            last_id,
            ..wanted
        };
        let mut choose = |found: Found<'_>| {
            if here.binary_search(&found.ble_event_id).is_ok() {
                places.push(found.place());
            }
            ControlFlow::Continue(())
        };
        let _ = walk(log, &within, Direction::Ascending, &mut choose).await?;
    }
    Ok(places)
}

/// The events in these rows of files, by id. One that is gone since is left out.
pub async fn load(
    log: &EventLog,
    tenant_uuid: TenantUuid,
    rows: &[(i64, Row)],
) -> Result<BTreeMap<i64, StoredEvent>> {
    let mut events = BTreeMap::new();
    let mut replaced: Vec<i64> = Vec::new();
    for (file, group, ids, rows) in by_group(rows) {
        match log.history.events(&file, group, &rows).await {
            Ok(found) => events.extend(found.into_iter().map(|event| (event.ble_event_id, event))),
            Err(error) => match failure(log, &file, error).await {
                Failure::Replaced => replaced.extend(ids),
                Failure::Failed(error) => return Err(error),
            },
        }
    }
    replaced.sort_unstable();
    for place in locate(log, tenant_uuid, &replaced).await? {
        let At::File { file, group, row } = place.at() else {
            continue;
        };
        let found = log.history.events(file, group, &[row]).await;
        let found = found.map_err(|error| unreadable(log, error))?;
        events.extend(found.into_iter().map(|event| (event.ble_event_id, event)));
    }
    Ok(events)
}

type GroupRows = (Arc<File>, usize, Vec<i64>, Vec<usize>);

/// The same rows by group, in the order of the rows.
fn by_group(rows: &[(i64, Row)]) -> Vec<GroupRows> {
    let mut groups: BTreeMap<(i64, usize), Vec<&(i64, Row)>> = BTreeMap::new();
    for one in rows {
        let key = (one.1.file.first_id, one.1.group);
        groups.entry(key).or_default().push(one);
    }
    let sorted = groups.into_iter().filter_map(|((_, group), mut rows)| {
        rows.sort_by_key(|(_, row)| row.row);
        let (_, first) = rows.first()?;
        Some((
            Arc::clone(&first.file),
            group,
            rows.iter().map(|(id, _)| *id).collect(),
            rows.iter().map(|(_, row)| row.row).collect(),
        ))
    });
    sorted.collect()
}
