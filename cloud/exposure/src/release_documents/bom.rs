//! What a release consists of, for those who send it on: the bill of materials of its maker, or
//! else the components that are known.

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_fleet::releases::contents::{self, ReleaseDocument};
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, ReleaseUuid};

use super::{components_in, list_of, store, unpack};
use crate::software::Packed;
use crate::software::components::ListedComponent;

/// The form of documents that are sent on as they are.
const CYCLONEDX: &str = "CYCLONEDX";

/// What a release consists of.
pub enum Bom {
    /// As its maker declares it: a document of CycloneDX.
    Declared(Vec<u8>),
    Known(Vec<ListedComponent>),
}

/// The same as it is stored, and of which release it is.
pub struct StoredBom {
    pub name: String,
    pub version: String,
    /// The architecture as in `uname -m`, or `any`.
    pub architecture: String,
    document: Option<Vec<u8>>,
    list: Option<Packed>,
}

impl StoredBom {
    /// To read a long one takes time: that is for a thread that may wait.
    pub fn read(self) -> Result<Bom> {
        match self.document {
            Some(packed) => unpack(&packed).map(Bom::Declared),
            None => components_in(self.list).map(Bom::Known),
        }
    }
}

/// What a release of an app of the tenant consists of, or of the platform if there is no app. None
/// if there is no such release.
pub async fn bom_of(
    conn: &mut Conn,
    scope: &Scope,
    app_uuid: Option<AppUuid>,
    release_uuid: ReleaseUuid,
) -> Result<Option<StoredBom>> {
    let release = match app_uuid {
        Some(app_uuid) => contents::of_app(conn, scope, app_uuid, release_uuid).await,
        None => contents::of_platform(conn, release_uuid).await,
    };
    let release = match release {
        Ok(release) => release,
        Err(error) if error.code() == "NOT_FOUND" => return Ok(None),
        Err(error) => return Err(error),
    };
    let signed = release.signed(ReleaseDocument::Sbom);
    let document = match signed.is_some_and(|signed| signed.format == CYCLONEDX) {
        true => store::get(conn, release_uuid, ReleaseDocument::Sbom).await?,
        false => None,
    };
    let list = match document {
        Some(_) => None,
        None => list_of(conn, scope.tenant_uuid(), release_uuid).await?,
    };
    Ok(Some(StoredBom {
        name: release.name,
        version: release.version,
        architecture: release.architecture,
        document,
        list,
    }))
}
