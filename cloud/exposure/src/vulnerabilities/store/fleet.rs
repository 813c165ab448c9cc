//! SQL of hubs, and of what they have and had that vulnerabilities affect.

use hub_base::db::{Conn, Slice, sql};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, ReleaseUuid, Timestamp};

/// Releases that one query asks for.
const AT_ONCE: usize = 500;

/// What hubs have and had, and how many hubs that is the same for.
#[derive(Debug)]
pub struct SharedHistory {
    pub present: Vec<u8>,
    /// The lists that they had before, in any order.
    pub before: Vec<Vec<u8>>,
    /// None where nobody has said it, and where hubs are not counted by it.
    pub country: Option<String>,
    pub hubs: i64,
}

/// What all hubs have and had, by their countries if `by_country`. Hubs that are alike are counted
/// where their rows are: read one by one, the rows of 10,000 hubs would take most of the time of an
/// answer.
pub async fn histories(
    conn: &mut Conn,
    scope: &Scope,
    by_country: bool,
) -> Result<Vec<SharedHistory>> {
    let (country, hubs, group) = match by_country {
        true => (
            "hubs.country",
            " JOIN hubs ON hubs.hub_uuid = of_hub.hub_uuid AND hubs.tenant_uuid = $1",
            ", hubs.country",
        ),
        false => ("CAST(NULL AS TEXT)", "", ""),
    };
    let rows: Vec<(String, Option<String>, Option<String>, i64)> =
        sql("SELECT of_hub.present, of_hub.before, ")
            .push(country)
            .push(" AS country, COUNT(*) AS number FROM (SELECT hub_uuid, ")
            .push("MAX(CASE WHEN ended_at IS NULL THEN ")
            .push_hex(conn, "list_sha256")
            .push(" END) AS present, string_agg(CASE WHEN ended_at IS NOT NULL THEN ")
            .push_hex(conn, "list_sha256")
            .push(" END, ',') AS before FROM hub_software WHERE tenant_uuid = $1")
            .bind(scope.tenant_uuid())
            .push(" GROUP BY hub_uuid) AS of_hub")
            .push(hubs)
            .push(" WHERE of_hub.present IS NOT NULL GROUP BY of_hub.present, of_hub.before")
            .push(group)
            .all(conn)
            .await?;
    let decoded = |digits: &str| hex::decode(digits).map_err(Error::internal);
    rows.into_iter()
        .map(|(present, before, country, hubs)| {
            let before = before.as_deref().unwrap_or_default();
            let before = before.split_terminator(',').map(decoded);
            Ok(SharedHistory {
                present: decoded(&present)?,
                before: before.collect::<Result<_>>()?,
                country,
                hubs,
            })
        })
        .collect()
}

/// The countries of the tenant's hubs, as far as somebody has said them.
pub async fn countries(conn: &mut Conn, scope: &Scope) -> Result<Vec<(HubUuid, String)>> {
    sql("SELECT hub_uuid, country FROM hubs WHERE tenant_uuid = $1 AND country IS NOT NULL")
        .bind(scope.tenant_uuid())
        .all(conn)
        .await
}

/// The hubs on which a job that installs a release is open, each with its list, if it has reported
/// one.
pub async fn updating(conn: &mut Conn, scope: &Scope) -> Result<Vec<(HubUuid, Option<Vec<u8>>)>> {
    sql("SELECT DISTINCT j.hub_uuid, h.list_sha256 FROM hub_jobs j \
         LEFT JOIN hub_software h ON h.hub_uuid = j.hub_uuid AND h.tenant_uuid = $1 \
         AND h.ended_at IS NULL \
         WHERE j.tenant_uuid = $1 AND j.finished_at IS NULL \
         AND j.job_type IN ('APP_INSTALL', 'SELF_UPDATE')")
    .bind(scope.tenant_uuid())
    .all(conn)
    .await
}

/// Releases with a component that one of these vulnerabilities affects, each with its list. The
/// list of ids must not be empty.
pub async fn releases(
    conn: &mut Conn,
    scope: &Scope,
    ids: &[String],
) -> Result<Vec<(ReleaseUuid, Vec<u8>)>> {
    sql(
        "SELECT s.release_uuid, s.list_sha256 FROM release_software s \
         WHERE s.tenant_uuid = $1 AND s.list_sha256 IN (SELECT e.list_sha256 FROM exposures e \
         WHERE e.tenant_uuid = $1 AND e.vulnerability_id IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(ids.iter().map(String::as_str))
    .push(")")
    .all(conn)
    .await
}

/// A hub that runs, or ran, a release of an app.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ReleaseRow {
    pub hub_uuid: HubUuid,
    pub release_uuid: ReleaseUuid,
    pub is_running: bool,
    /// What the hub has reported of its packages.
    pub list_sha256: Option<Vec<u8>>,
    /// Whether the hub still reports what it runs.
    pub is_present: bool,
}

/// The hubs that run, or ran, one of these releases.
pub async fn running(
    conn: &mut Conn,
    scope: &Scope,
    releases: &[ReleaseUuid],
) -> Result<Vec<ReleaseRow>> {
    let mut found = Vec::new();
    for some in releases.chunks(AT_ONCE) {
        let rows: Vec<ReleaseRow> = sql(
            "SELECT r.hub_uuid, r.release_uuid, r.running = 1 AS is_running, h.list_sha256, \
             (h.hub_uuid IS NOT NULL OR EXISTS (SELECT 1 FROM hub_app_periods o \
             WHERE o.hub_uuid = r.hub_uuid AND o.tenant_uuid = $1 AND o.ended_at IS NULL)) \
             AS is_present FROM (SELECT p.hub_uuid, p.release_uuid, \
             MAX(CASE WHEN p.ended_at IS NULL THEN 1 ELSE 0 END) AS running \
             FROM hub_app_periods p WHERE p.tenant_uuid = $1 AND p.release_uuid IN ",
        )
        .bind(scope.tenant_uuid())
        .push_list(some.iter().copied())
        .push(
            " GROUP BY p.hub_uuid, p.release_uuid) AS r LEFT JOIN hub_software h \
             ON h.hub_uuid = r.hub_uuid AND h.tenant_uuid = $1 AND h.ended_at IS NULL",
        )
        .all(conn)
        .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// The lists that hubs had before which run, or ran, one of these releases.
pub async fn lists_before(
    conn: &mut Conn,
    scope: &Scope,
    releases: &[ReleaseUuid],
) -> Result<Vec<(HubUuid, Vec<u8>)>> {
    let mut found = Vec::new();
    for some in releases.chunks(AT_ONCE) {
        let rows: Vec<(HubUuid, Vec<u8>)> = sql(
            "SELECT DISTINCT m.hub_uuid, m.list_sha256 FROM hub_software m \
             WHERE m.tenant_uuid = $1 AND m.ended_at IS NOT NULL AND m.hub_uuid IN \
             (SELECT p.hub_uuid FROM hub_app_periods p \
             WHERE p.tenant_uuid = $1 AND p.release_uuid IN ",
        )
        .bind(scope.tenant_uuid())
        .push_list(some.iter().copied())
        .push(")")
        .all(conn)
        .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// A hub that has, or had, a package that a vulnerability affects.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct HubRow {
    pub hub_uuid: HubUuid,
    pub is_exposed: bool,
    pub exposed_at: Timestamp,
    /// When it last ended to have one.
    pub ended_at: Option<Timestamp>,
}

/// The hubs of the tenant `$1` that have, or had, what the vulnerability `$2` affects: a package of
/// the machine, or a component of a release. All rows of the tenant are read once. What joins hubs
/// to hubs takes minutes while a database has no statistics yet.
pub const FOUND: &str = "(SELECT h.hub_uuid, \
    MAX(CASE WHEN h.ended_at IS NULL THEN 1 ELSE 0 END) AS is_present, \
    MAX(CASE WHEN a.list_sha256 IS NULL THEN 0 ELSE 1 END) AS was_exposed, \
    MAX(CASE WHEN h.ended_at IS NULL AND a.list_sha256 IS NOT NULL THEN 1 ELSE 0 END) \
    AS exposed, MIN(CASE WHEN a.list_sha256 IS NOT NULL THEN h.began_at END) AS exposed_at, \
    MAX(CASE WHEN a.list_sha256 IS NOT NULL THEN h.ended_at END) AS ended_at \
    FROM (SELECT m.hub_uuid, m.list_sha256, m.began_at, m.ended_at FROM hub_software m \
    WHERE m.tenant_uuid = $1 UNION ALL \
    SELECT p.hub_uuid, s.list_sha256, p.began_at, p.ended_at FROM hub_app_periods p \
    LEFT JOIN release_software s ON s.tenant_uuid = p.tenant_uuid \
    AND s.release_uuid = p.release_uuid WHERE p.tenant_uuid = $1) AS h \
    LEFT JOIN (SELECT DISTINCT e.list_sha256 FROM exposures e \
    WHERE e.tenant_uuid = $1 AND e.vulnerability_id = $2) AS a \
    ON a.list_sha256 = h.list_sha256 GROUP BY h.hub_uuid) AS found \
    WHERE found.is_present = 1 AND found.was_exposed = 1";

/// One page of them, those that have one first, and the total number.
pub async fn hubs(
    conn: &mut Conn,
    scope: &Scope,
    vulnerability_id: &str,
    slice: Slice,
) -> Result<(Vec<HubRow>, i64)> {
    let list = sql("FROM ")
        .push(FOUND)
        .bind((scope.tenant_uuid(), vulnerability_id));
    let columns =
        "found.hub_uuid, found.exposed = 1 AS is_exposed, found.exposed_at, found.ended_at";
    let order: &[&str] = &["found.exposed DESC, found.hub_uuid"];
    list.page(conn, columns, order, slice).await
}

/// What a hub has or had.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct HadRow {
    pub hub_uuid: HubUuid,
    /// None of a release of which nothing is known.
    pub list_sha256: Option<Vec<u8>>,
    /// None: the packages of the machine.
    pub release_uuid: Option<ReleaseUuid>,
    pub is_current: bool,
}

/// What these hubs have or had, the last first. The hubs must not be none.
pub async fn lists_of(conn: &mut Conn, scope: &Scope, hubs: &[HubUuid]) -> Result<Vec<HadRow>> {
    sql(
        "SELECT x.hub_uuid, x.list_sha256, x.release_uuid, x.present = 1 AS is_current FROM \
         (SELECT p.hub_uuid, s.list_sha256, p.release_uuid, p.began_at, \
         CASE WHEN p.ended_at IS NULL THEN 1 ELSE 0 END AS present FROM hub_app_periods p \
         LEFT JOIN release_software s ON s.tenant_uuid = p.tenant_uuid \
         AND s.release_uuid = p.release_uuid WHERE p.tenant_uuid = $1 AND p.hub_uuid IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(hubs.iter().copied())
    .push(
        " UNION ALL SELECT m.hub_uuid, m.list_sha256, NULL, m.began_at, \
         CASE WHEN m.ended_at IS NULL THEN 1 ELSE 0 END FROM hub_software m \
         WHERE m.tenant_uuid = $1 AND m.hub_uuid IN ",
    )
    .push_list(hubs.iter().copied())
    .push(") AS x ORDER BY x.began_at DESC, x.hub_uuid")
    .all(conn)
    .await
}
