//! The documents that come with a release: its bill of materials, and what its maker states about
//! vulnerabilities. The manifest names their digests, so that its signature covers them. They are
//! kept as they came; what is read of them is a list of components and statements.

mod agents;
mod bom;
mod found;
pub mod http;
mod statements;
mod store;

use hub_advisories::documents::{self, Content, Kind};
use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::{Audit, Author};
use hub_core::tasks;
use hub_fleet::releases::contents::{
    self, ComponentSource, Documented, MAX_UNMATCHED, ReleaseDocument, ReleaseDocumentResponse,
    no_document,
};
use hub_identity::authn::user::User;
use hub_identity::authz::Scope;
use hub_protocol::release::SignedDocument;
use hub_protocol::{AppUuid, ReleaseUuid, TenantUuid};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::software::components::{self, Contents, ListedComponent};
use crate::software::list::StoredList;
use crate::software::{self, ListKey, Packed};
use crate::vulnerabilities::{self, Statement};
pub use agents::adopt;
pub use bom::{Bom, StoredBom, bom_of};
pub use found::perform;
use statements::Subject;
pub use store::forget_all;

/// Documents are written once and read seldom.
const LEVEL: i32 = 9;

/// Whose release it is, and who acts on it.
enum Owner<'a> {
    App(&'a Scope, AppUuid),
    Platform(&'a User),
}

impl Owner<'_> {
    fn tenant_uuid(&self) -> Option<TenantUuid> {
        match self {
            Self::App(scope, _) => Some(scope.tenant_uuid()),
            Self::Platform(_) => None,
        }
    }

    async fn find(&self, conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Documented> {
        match self {
            Self::App(scope, app) => contents::of_app(conn, scope, *app, release_uuid).await,
            Self::Platform(_) => contents::of_platform(conn, release_uuid).await,
        }
    }

    async fn lock(&self, tx: &mut Tx, release_uuid: ReleaseUuid) -> Result<Documented> {
        match self {
            Self::App(scope, app) => contents::lock_of_app(tx, scope, *app, release_uuid).await,
            Self::Platform(_) => contents::lock_of_platform(tx, release_uuid).await,
        }
    }

    fn author(&self) -> (Author, &'static str) {
        match self {
            Self::App(scope, _) => ((*scope).into(), "app_release.document"),
            Self::Platform(admin) => ((*admin).into(), "agent_release.document"),
        }
    }
}

/// What was read of a document that is to be stored.
struct Read {
    packed: Vec<u8>,
    content: Content,
    /// Of a bill of materials.
    declared: Declared,
    list: Option<StoredList>,
}

/// The components that a bill of materials has, and what others may call the release.
type Declared = (Vec<ListedComponent>, Vec<String>);

/// Stores a document of a release: exactly the one that its manifest names.
async fn put(
    core: &Core,
    owner: &Owner<'_>,
    release_uuid: ReleaseUuid,
    document: ReleaseDocument,
    bytes: bytes::Bytes,
) -> Result<ReleaseDocumentResponse> {
    let mut conn = core.db.read().await?;
    let release = owner.find(&mut conn, release_uuid).await?;
    let signed = expected(&release, document)?;
    if let Some(at) = release.uploaded_at(document) {
        require_same(&signed, &bytes)?;
        return release
            .shown(document, at)
            .ok_or_else(|| no_document(document));
    }
    let other = match document {
        ReleaseDocument::Sbom => ReleaseDocument::Vex,
        ReleaseDocument::Vex => ReleaseDocument::Sbom,
    };
    let other = store::get(&mut conn, release_uuid, other).await?;
    let known = match (document, owner.tenant_uuid(), &other) {
        (ReleaseDocument::Vex, Some(tenant_uuid), None) => {
            list_of(&mut conn, tenant_uuid, release_uuid).await?
        }
        _ => None,
    };
    drop(conn);
    let (read, stated, unmatched) = core
        .bodies
        .work(move || {
            let mut read = read(document, &signed, &bytes)?;
            let (components, names) = match (document, &other) {
                (ReleaseDocument::Sbom, _) => std::mem::take(&mut read.declared),
                (ReleaseDocument::Vex, Some(sbom)) => declared_in(sbom)?.unwrap_or_default(),
                (ReleaseDocument::Vex, None) => (components_in(known)?, Vec::new()),
            };
            let (name, version) = (&release.name, &release.version);
            let subject = Subject::new(release_uuid, name, version, &components).named(&names);
            let stated = stated(&read.content, other.as_deref(), &subject)?;
            let unmatched = match &read.content {
                Content::Vex(vex) => Some(statements::unmatched(vex, &subject, MAX_UNMATCHED)),
                Content::Sbom(_) => None,
            };
            Ok::<_, Error>((read, stated, unmatched))
        })
        .await??;
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let release = owner.lock(&mut tx, release_uuid).await?;
    let shown = |at| {
        release
            .shown(document, at)
            .ok_or_else(|| no_document(document))
    };
    if let Some(at) = release.uploaded_at(document) {
        return shown(at);
    }
    let tenant_uuid = owner.tenant_uuid();
    store::put(&mut tx, release_uuid, document, tenant_uuid, &read.packed).await?;
    release.note_document(&mut tx, document, now).await?;
    if let Some(list) = &read.list {
        let source = ComponentSource::Declared;
        release
            .note_components(&mut tx, source, list.package_count)
            .await?;
    }
    match tenant_uuid {
        Some(tenant_uuid) => {
            if let Some(list) = &read.list {
                software::put_of_release(&mut tx, tenant_uuid, release_uuid, list, now).await?;
            }
            if let Some(stated) = &stated {
                vulnerabilities::put_of_maker(&mut tx, tenant_uuid, release_uuid, stated).await?;
            }
        }
        // Tenants get it from `agents`.
        None => {
            software::forget_release(&mut tx, release_uuid).await?;
            tasks::enqueue(core, &mut tx, software::adopting(release_uuid, now), now).await?;
        }
    }
    tasks::enqueue(core, &mut tx, software::matching(now), now).await?;
    let shown = shown(now)?;
    let (author, action) = owner.author();
    let audit = Audit::new(author, action, release_uuid, now);
    tx.commit(audit.changed(None, Some(json!(shown)))).await?;
    Ok(match unmatched {
        Some(products) => shown.with_unmatched(products),
        None => shown,
    })
}

/// What the manifest says of a document that may be uploaded now.
fn expected(release: &Documented, document: ReleaseDocument) -> Result<SignedDocument> {
    let Some(signed) = release.signed(document) else {
        let name = document.name();
        let message = format!(
            "the manifest of this release names no `{name}`; sign a release with --{name} FILE"
        );
        return Err(Error::conflict("DOCUMENT_NOT_SIGNED", message));
    };
    match release.is_ready() {
        true => Ok(signed),
        false => Err(Error::conflict(
            "RELEASE_AWAITS_FILE",
            "the file of this release has not been uploaded; upload it first",
        )),
    }
}

fn require_same(signed: &SignedDocument, bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 != signed.size_bytes {
        let message = format!(
            "the document has {} bytes, and {} in the manifest of the release",
            bytes.len(),
            signed.size_bytes
        );
        return Err(Error::bad_request("WRONG_SIZE", message));
    }
    let sha256 = hex::encode(Sha256::digest(bytes));
    match sha256 == signed.sha256 {
        true => Ok(()),
        false => {
            let message = format!(
                "the SHA-256 of the document is {sha256}, and {} in the manifest of the release",
                signed.sha256
            );
            Err(Error::bad_request("WRONG_DIGEST", message))
        }
    }
}

fn read(document: ReleaseDocument, signed: &SignedDocument, bytes: &[u8]) -> Result<Read> {
    require_same(signed, bytes)?;
    let kind = match document {
        ReleaseDocument::Sbom => Kind::Sbom,
        ReleaseDocument::Vex => Kind::Vex,
    };
    let mut content =
        documents::read(kind, bytes).map_err(|error| Error::field("body", error.to_string()))?;
    if content.format() != signed.format {
        let message = format!(
            "is {}, and {} in the manifest of the release",
            content.format(),
            signed.format
        );
        return Err(Error::field("body", message));
    }
    let (mut declared, mut list) = (Declared::default(), None);
    if let Content::Sbom(document) = &mut content {
        declared = declared_by(document);
        let packed = components::pack(&declared.0)?;
        list = Some(packed.ok_or_else(|| Error::field("body", "has too many components"))?);
    }
    Ok(Read {
        packed: zstd::bulk::compress(bytes, LEVEL).map_err(Error::internal)?,
        content,
        declared,
        list,
    })
}

/// What a document says, from which it is taken.
fn declared_by(document: &mut hub_advisories::components::Document) -> Declared {
    let components = std::mem::take(&mut document.components);
    let components = components.into_iter().map(ListedComponent::from);
    (components.collect(), std::mem::take(&mut document.names))
}

/// The same of a document that is stored; it was read before.
fn declared_in(packed: &[u8]) -> Result<Option<Declared>> {
    match documents::read(Kind::Sbom, &unpack(packed)?) {
        Ok(Content::Sbom(mut document)) => Ok(Some(declared_by(&mut document))),
        _ => Ok(None),
    }
}

/// What the maker states about the release, by the document that came, or by the one that is there.
fn stated(
    content: &Content,
    other: Option<&[u8]>,
    subject: &Subject<'_>,
) -> Result<Option<Vec<Statement>>> {
    let too_many = || Error::field("body", "has too many statements");
    match (content, other) {
        (Content::Vex(document), _) => {
            let stated = statements::about(document, subject);
            stated.ok_or_else(too_many).map(Some)
        }
        (Content::Sbom(_), Some(packed)) => stated_in(packed, subject),
        (Content::Sbom(_), None) => Ok(None),
    }
}

/// The same, by a document that is stored; it was read before.
fn stated_in(packed: &[u8], subject: &Subject<'_>) -> Result<Option<Vec<Statement>>> {
    match documents::read(Kind::Vex, &unpack(packed)?) {
        Ok(Content::Vex(document)) => Ok(statements::about(&document, subject)),
        _ => Ok(None),
    }
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>> {
    zstd::bulk::decompress(packed, documents::MAX_BYTES).map_err(Error::internal)
}

/// A document of a release of an app.
async fn of_app(
    core: &Core,
    scope: &Scope,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
    document: ReleaseDocument,
) -> Result<Vec<u8>> {
    let mut conn = core.db.read().await?;
    let release = contents::of_app(&mut conn, scope, app_uuid, release_uuid).await?;
    content(core, conn, &release, document).await
}

/// A document of a release of the platform.
async fn of_platform(
    core: &Core,
    release_uuid: ReleaseUuid,
    document: ReleaseDocument,
) -> Result<Vec<u8>> {
    let mut conn = core.db.read().await?;
    let release = contents::of_platform(&mut conn, release_uuid).await?;
    match release.is_ready() {
        true => content(core, conn, &release, document).await,
        false => Err(no_document(document)),
    }
}

async fn content(
    core: &Core,
    mut conn: Conn,
    release: &Documented,
    document: ReleaseDocument,
) -> Result<Vec<u8>> {
    let packed = store::get(&mut conn, release.release_uuid, document).await?;
    drop(conn);
    let packed = packed.ok_or_else(|| no_document(document))?;
    core.bodies.work(move || unpack(&packed)).await?
}

/// The list of what a release of an app consists of, if that is known, and how it is.
async fn components(
    conn: &mut Conn,
    scope: &Scope,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
) -> Result<(ComponentSource, Option<Packed>)> {
    let release = contents::of_app(conn, scope, app_uuid, release_uuid).await?;
    let list = list_of(conn, scope.tenant_uuid(), release_uuid).await?;
    Ok((release.source, list))
}

async fn list_of(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    release_uuid: ReleaseUuid,
) -> Result<Option<Packed>> {
    let key: Option<ListKey> = software::of_release(conn, tenant_uuid, release_uuid).await?;
    match key {
        Some(key) => software::stored(conn, &key).await,
        None => Ok(None),
    }
}

/// The components of a list of a release; none if there is no list.
fn components_in(list: Option<Packed>) -> Result<Vec<ListedComponent>> {
    let contents = list.map(|list| list.contents()).transpose()?;
    Ok(match contents {
        Some(Contents::Components(components)) => components,
        _ => Vec::new(),
    })
}
