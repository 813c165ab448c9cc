//! Floor plans: images of where a tenant's hubs are, and where on them. They say nothing of
//! devices: where one is follows from its receptions.

pub mod http;
mod image;
mod store;

use std::collections::{HashMap, HashSet};

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_core::http::etag::IfNoneMatch;
use hub_core::http::patch::Change;
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_protocol::HubUuid;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hubs;
use image::{ImageType, MAX_PIXELS, pixels_of};
use store::{ImageRow, PlanRow};
pub use store::{delete_all, forget_hub};

const MAX_PLANS: i64 = 20;
const MAX_HUBS: usize = 500;
const MAX_NAME_CHARS: usize = 200;

/// The position of a hub, in millionths of the plan's width and height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    hub_uuid: HubUuid,
    x: i64,
    y: i64,
}

/// A plan with its hubs, in the order of their uuids.
#[derive(Clone, Debug, PartialEq)]
struct Plan {
    row: PlanRow,
    hubs: Vec<Position>,
}

/// The values given for a plan; checked, except for the owner of the hubs.
struct Given {
    name: Option<String>,
    width_millimetres: Change<i64>,
    hubs: Option<Vec<Position>>,
}

impl Plan {
    /// The representation in the audit log. Hubs are counted.
    fn state(&self) -> Value {
        json!({
            "name": self.row.name,
            "widthMetres": metres(self.row.width_millimetres),
            "imageType": self.row.image_type,
            "imageSha256": self.row.image_hash,
            "hubs": self.hubs.len(),
        })
    }
}

fn metres(millimetres: Option<i64>) -> Option<f64> {
    millimetres.map(|millimetres| millimetres as f64 / 1000.0)
}

fn not_found() -> Error {
    Error::not_found("floor plan")
}

async fn list(conn: &mut Conn, scope: &Scope) -> Result<Vec<Plan>> {
    let rows = store::list(conn, scope, MAX_PLANS).await?;
    let mut hubs: HashMap<Uuid, Vec<Position>> = HashMap::new();
    for (id, position) in store::hubs(conn, scope, None).await? {
        hubs.entry(id).or_default().push(position);
    }
    let with_hubs = |row: PlanRow| Plan {
        hubs: hubs.remove(&row.floor_plan_uuid).unwrap_or_default(),
        row,
    };
    Ok(rows.into_iter().map(with_hubs).collect())
}

async fn get(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Plan> {
    let row = store::get(conn, scope, id).await?.ok_or_else(not_found)?;
    Ok(Plan {
        hubs: positions(conn, scope, id).await?,
        row,
    })
}

async fn positions(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Vec<Position>> {
    let hubs = store::hubs(conn, scope, Some(id)).await?;
    Ok(hubs.into_iter().map(|(_, position)| position).collect())
}

/// 400 naming every hub that is not the tenant's, or is named twice. They stay the tenant's until
/// the transaction ends, so that none is placed that is released meanwhile.
async fn require_own(tx: &mut Tx, scope: &Scope, given: &[Position]) -> Result<()> {
    let uuids: Vec<HubUuid> = given.iter().map(|position| position.hub_uuid).collect();
    let own = hubs::lock_present(tx, scope, &uuids).await?;
    let (mut check, mut seen) = (Check::new(), HashSet::new());
    for (at, hub_uuid) in uuids.iter().enumerate() {
        let field = || format!("hubs[{at}].hubUuid");
        check.that(own.contains(hub_uuid), field(), "is no hub of this tenant");
        check.that(seen.insert(hub_uuid), field(), "is on the plan already");
    }
    check.done()
}

fn sorted(mut hubs: Vec<Position>) -> Vec<Position> {
    hubs.sort_by_key(|position| position.hub_uuid.0);
    hubs
}

async fn create(core: &Core, scope: &Scope, given: Given) -> Result<Plan> {
    let now = core.clock.now();
    // The lock makes concurrent creations count each other.
    let (mut tx, _) = tenants::lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    if store::count(&mut tx, scope).await? >= MAX_PLANS {
        let message =
            format!("a tenant may have at most {MAX_PLANS} floor plans; delete one first");
        return Err(Error::conflict("TOO_MANY_FLOOR_PLANS", message));
    }
    let hubs = given.hubs.unwrap_or_default();
    require_own(&mut tx, scope, &hubs).await?;
    let hubs = sorted(hubs);
    let row = PlanRow {
        floor_plan_uuid: Uuid::now_v7(),
        name: given.name.unwrap_or_default(),
        width_millimetres: given.width_millimetres.of(None),
        image_type: None,
        image_bytes: None,
        image_width: None,
        image_height: None,
        image_hash: None,
        created_at: now,
        updated_at: now,
    };
    store::insert(&mut tx, scope, &row).await?;
    store::replace_hubs(&mut tx, row.floor_plan_uuid, &hubs).await?;
    let plan = Plan { row, hubs };
    let audit = Audit::new(scope, "floor_plan.create", plan.row.floor_plan_uuid, now);
    tx.commit(audit.changed(None, Some(plan.state()))).await?;
    Ok(plan)
}

async fn update(core: &Core, scope: &Scope, id: Uuid, given: Given) -> Result<Plan> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let row = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(not_found)?;
    let before = Plan {
        hubs: positions(&mut tx, scope, id).await?,
        row,
    };
    let mut after = before.clone();
    if let Some(name) = given.name {
        after.row.name = name;
    }
    after.row.width_millimetres = given.width_millimetres.of(after.row.width_millimetres);
    if let Some(hubs) = given.hubs {
        require_own(&mut tx, scope, &hubs).await?;
        after.hubs = sorted(hubs);
    }
    if after == before {
        return Ok(before);
    }
    after.row.updated_at = now;
    store::update(&mut tx, scope, &after.row).await?;
    if after.hubs != before.hubs {
        store::replace_hubs(&mut tx, id, &after.hubs).await?;
    }
    let audit = Audit::new(scope, "floor_plan.update", id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// Replaces the image of a plan.
async fn put_image(core: &Core, scope: &Scope, id: Uuid, image: Vec<u8>) -> Result<Plan> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let row = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(not_found)?;
    // The image is checked after the look-up: to other tenants a plan is unknown, whatever they
    // send.
    let Some(kind) = ImageType::of(&image) else {
        return Err(Error::field("body", "must be a PNG, JPEG or WebP image"));
    };
    let Some((width, height)) = pixels_of(&image) else {
        return Err(Error::field(
            "body",
            "must say its width and height; the image is damaged",
        ));
    };
    if width.saturating_mul(height) > MAX_PIXELS {
        let message = format!(
            "must have at most {} megapixels; this image has {width} x {height}",
            MAX_PIXELS / 1_000_000
        );
        return Err(Error::field("body", message));
    }
    let before = Plan {
        hubs: positions(&mut tx, scope, id).await?,
        row,
    };
    let mut after = before.clone();
    after.row.image_type = Some(kind.name().to_owned());
    after.row.image_bytes = i64::try_from(image.len()).ok();
    after.row.image_width = i64::try_from(width).ok();
    after.row.image_height = i64::try_from(height).ok();
    after.row.image_hash = Some(hex::encode(sealing::digest(&image)));
    if after == before {
        return Ok(before);
    }
    after.row.updated_at = now;
    store::put_image(&mut tx, id, image).await?;
    store::update(&mut tx, scope, &after.row).await?;
    let audit = Audit::new(scope, "floor_plan.update_image", id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// The entity tag of an image.
fn etag(hash: &str) -> String {
    format!("\"{hash}\"")
}

/// The image of a plan with its tag, or the tag alone where the caller has the image. 404 if there
/// is none.
async fn image(
    conn: &mut Conn,
    scope: &Scope,
    id: Uuid,
    known: &IfNoneMatch,
) -> Result<(String, Option<(ImageType, Vec<u8>)>)> {
    let no_image = || Error::not_found("image of the floor plan");
    let row = store::get(conn, scope, id).await?.ok_or_else(not_found)?;
    let tag = etag(&row.image_hash.ok_or_else(no_image)?);
    if known.matches(&tag) {
        return Ok((tag, None));
    }
    let ImageRow {
        image_type,
        image_hash,
        image,
    } = store::image(conn, scope, id).await?.ok_or_else(no_image)?;
    Ok((etag(&image_hash), Some((image_type, image))))
}

async fn delete(core: &Core, scope: &Scope, id: Uuid) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let row = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(not_found)?;
    let before = Plan {
        hubs: positions(&mut tx, scope, id).await?,
        row,
    };
    store::delete(&mut tx, id).await?;
    let audit = Audit::new(scope, "floor_plan.delete", id, core.clock.now());
    tx.commit(audit.changed(Some(before.state()), None)).await
}
