//! Documents as programs write them, and documents that nobody should.

use serde_json::{Value, json};

use super::*;

fn read_value(document: &Value) -> Document {
    read(document.to_string().as_bytes()).expect("a document")
}

fn fault_of(document: &Value) -> String {
    let error = read(document.to_string().as_bytes()).expect_err("no document");
    error.to_string()
}

fn cyclonedx(components: Value) -> Value {
    json!({ "bomFormat": "CycloneDX", "specVersion": "1.5", "components": components })
}

fn spdx(packages: Value) -> Value {
    json!({ "spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "packages": packages })
}

fn names(document: &Document) -> Vec<&str> {
    let components = document.components.iter();
    components
        .map(|component| component.name.as_str())
        .collect()
}

#[test]
fn a_document_of_cyclonedx_is_read() {
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79",
        "version": 1,
        "metadata": {
            "timestamp": "2024-05-01T00:00:00Z",
            "component": {
                "type": "application", "bom-ref": "app", "name": "app", "version": "1.0.0",
                "components": [{ "type": "application", "name": "bin", "version": "1.0.0" }]
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": "deb-libssl3",
                "name": "libssl3",
                "version": "3.0.11-1~deb12u2",
                "licenses": [{ "license": { "id": "Apache-2.0" } }],
                "purl": "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=arm64&upstream=openssl&distro=debian-12"
            },
            {
                "type": "library", "group": "@scope", "name": "core", "version": "1.2.3",
                "purl": "pkg:npm/%40scope/core@1.2.3",
                "components": [
                    { "type": "library", "name": "inner", "version": "0.1", "purl": "pkg:cargo/inner@0.1.0" },
                    { "type": "file", "name": "/etc/passwd" }
                ]
            },
            { "type": "firmware", "name": "radio", "version": "7", "purl": "no purl" },
            { "type": "library", "version": "1" }
        ],
        "dependencies": [{ "ref": "app", "dependsOn": ["deb-libssl3"] }]
    });
    let document = read_value(&document);
    assert_eq!(document.form, Form::CycloneDx("1.6".to_owned()));
    assert_eq!(document.cut, 2);
    assert_eq!(
        names(&document),
        ["bin", "libssl3", "inner", "@scope/core", "radio"]
    );
    let [_, debian, inner, _, radio] = document.components.as_slice() else {
        panic!("five components");
    };
    assert_eq!(
        *debian,
        Component {
            ecosystem: Some(Ecosystem::Debian),
            distribution: Some("Debian:12".to_owned()),
            name: "libssl3".to_owned(),
            version: "3.0.11-1~deb12u2".to_owned(),
            source: Some(("openssl".to_owned(), None)),
            purl: Some(
                "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=arm64&upstream=openssl&distro=debian-12"
                    .to_owned()
            ),
            id: Some("deb-libssl3".to_owned()),
        }
    );
    assert_eq!(
        (inner.ecosystem, inner.version.as_str()),
        (Some(Ecosystem::CratesIo), "0.1.0")
    );
    assert_eq!((radio.ecosystem, radio.version.as_str()), (None, "7"));
}

#[test]
fn a_document_has_the_names_that_others_call_it_by() {
    let number = "3e671687-395b-41f5-a30f-a58921a69b79";
    let mut document = cyclonedx(json!([]));
    document["serialNumber"] = json!(format!("urn:uuid:{number}"));
    document["version"] = json!(3);
    document["metadata"] = json!({"component": {
        "name": "app", "bom-ref": "app", "purl": "pkg:generic/app@1.0.0",
        "externalReferences": [
            {"type": "website", "url": "https://example.com/app"}, {"type": "other"},
            {"type": "other", "url": "a\u{0}b"},
        ],
    }});
    assert_eq!(
        read_value(&document).names,
        [
            format!("urn:uuid:{number}"),
            format!("urn:cdx:{number}/3#app"),
            format!("urn:cdx:{number}/3"),
            "pkg:generic/app@1.0.0".to_owned(),
            "https://example.com/app".to_owned(),
        ]
    );
    let mut document = spdx(json!([]));
    document["documentNamespace"] = json!("https://example.com/spdx/1");
    assert_eq!(
        read_value(&document).names,
        [
            "https://example.com/spdx/1",
            "https://example.com/spdx/1#SPDXRef-DOCUMENT"
        ]
    );
    assert!(read_value(&cyclonedx(json!([]))).names.is_empty());
}

#[test]
fn a_document_of_spdx_is_read() {
    let document = spdx(json!([
        {
            "SPDXID": "SPDXRef-Package-requests",
            "name": "requests",
            "versionInfo": "2.30.0",
            "downloadLocation": "NOASSERTION",
            "externalRefs": [
                { "referenceCategory": "SECURITY", "referenceType": "cpe23Type",
                  "referenceLocator": "cpe:2.3:a:python:requests:2.30.0:*:*:*:*:*:*:*" },
                { "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                  "referenceLocator": "pkg:pypi/requests@2.30.0" }
            ]
        },
        { "SPDXID": "SPDXRef-a", "name": "a", "versionInfo": "1" },
        { "SPDXID": "SPDXRef-b", "name": "b", "versionInfo": "NOASSERTION" },
        { "SPDXID": "SPDXRef-c", "versionInfo": "1", "externalRefs": null }
    ]));
    let document = read_value(&document);
    assert_eq!(document.form, Form::Spdx);
    assert_eq!(document.cut, 2);
    assert_eq!(names(&document), ["requests", "a"]);
    let requests = document.components.first().expect("a component");
    assert_eq!(requests.ecosystem, Some(Ecosystem::PyPi));
    assert_eq!(requests.id.as_deref(), Some("SPDXRef-Package-requests"));
    assert_eq!(
        read_value(&json!({ "spdxVersion": "SPDX-2.2" })).components,
        []
    );
}

#[test]
fn other_documents_are_refused_by_what_they_are() {
    for (document, expected) in [
        (
            json!({ "bomFormat": "CycloneDX", "specVersion": "1.4" }),
            "specVersion: is \"1.4\"",
        ),
        (json!({ "bomFormat": "CycloneDX" }), "specVersion: is \"\""),
        (
            json!({ "bomFormat": "Other", "specVersion": "1.5" }),
            "bomFormat: is \"Other\"",
        ),
        (
            json!({ "spdxVersion": "SPDX-3.0" }),
            "spdxVersion: is \"SPDX-3.0\"",
        ),
        (
            json!({ "@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": [] }),
            "@context: is \"https://spdx.org/rdf/3.0.1/spdx-context.jsonld\"",
        ),
        (json!({}), "neither `bomFormat` nor `spdxVersion` is there"),
        (json!({ "bomFormat": 1 }), "bomFormat: invalid type"),
        (json!("CycloneDX"), "invalid type"),
    ] {
        let fault = fault_of(&document);
        assert!(fault.starts_with(expected), "{fault}");
    }
    for (text, expected) in [
        (
            "\u{feff} <?xml version=\"1.0\"?><bom/>",
            "the document is XML",
        ),
        (
            "SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0",
            "the document is SPDX's text of tags",
        ),
        ("PK\u{3}\u{4}", "the document is an archive"),
        ("", "EOF while parsing"),
        ("{", "EOF while parsing"),
        ("{} {}", "after the end"),
    ] {
        let fault = read(text.as_bytes()).expect_err("no document").to_string();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

#[test]
fn every_limit_is_kept_and_names_what_exceeds_it() {
    let named =
        |name: &str| json!([{ "name": "a", "version": "1" }, { "name": name, "version": "1" }]);
    let long = "x".repeat(501);
    for (document, expected) in [
        (
            cyclonedx(named(&long)),
            "components[1]: name: longer than 500 characters",
        ),
        (
            cyclonedx(named("a\u{7}")),
            "components[1]: name: contains a control character",
        ),
        (
            spdx(named(&long)),
            "packages: element 1: name: longer than 500 characters",
        ),
        (
            cyclonedx(json!([{ "name": 1 }])),
            "components[0].name: invalid type",
        ),
        (cyclonedx(json!([1])), "components[0]: invalid type"),
        (cyclonedx(json!({})), "components: invalid type"),
        (spdx(json!({})), "packages: invalid type"),
        (
            cyclonedx(json!([{ "name": "a", "version": long }])),
            "components[0]: version: longer than 500 characters",
        ),
        (
            cyclonedx(json!([{ "bom-ref": "x".repeat(2_001) }])),
            "components[0]: id: longer than 2000 characters",
        ),
        (
            cyclonedx(json!([{ "purl": "pkg:npm/a%00b@1" }])),
            "components[0]: name: contains a control character",
        ),
        (
            cyclonedx(json!([{ "purl": "pkg:deb/debian/a@1?upstream=%0A" }])),
            "components[0]: purl: contains a control character",
        ),
    ] {
        let fault = fault_of(&document);
        assert!(fault.starts_with(expected), "{fault}");
    }
    assert_eq!(
        read_value(&cyclonedx(named(&"ü".repeat(500))))
            .components
            .len(),
        2
    );
    let large = read(&vec![b' '; 32 * 1024 * 1024 + 1]).expect_err("too large");
    assert_eq!(large.to_string(), "the document is longer than 32 MiB");
}

#[test]
fn a_document_has_at_most_so_many_components() {
    let entries = |count: usize| {
        vec!["{\"name\":\"a\",\"version\":\"1\",\"versionInfo\":\"1\"}"; count].join(",")
    };
    let documents = |list: &str| {
        [
            format!(
                "{{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.7\",\"components\":[{list}]}}"
            ),
            format!("{{\"spdxVersion\":\"SPDX-2.3\",\"packages\":[{list}]}}"),
        ]
    };
    for document in documents(&entries(MAX_COMPONENTS)) {
        let read = read(document.as_bytes()).expect("a document");
        assert_eq!(read.components.len(), MAX_COMPONENTS);
    }
    for document in documents(&entries(MAX_COMPONENTS + 1)) {
        assert!(
            read(document.as_bytes())
                .expect_err("too many")
                .to_string()
                .contains("more than")
        );
    }
    // In each of many lists there are few.
    let lists = vec!["{\"components\":[{},{},{}]}"; 30_000].join(",");
    let [nested, _] = documents(&lists);
    let error = read(nested.as_bytes()).expect_err("too many");
    assert_eq!(error.field(), "components[25000].components[0]");
    assert!(error.to_string().ends_with(": more than 100000 components"));
}

#[test]
fn components_are_nested_so_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let inner = (1..depth).fold(
            json!([]),
            |inner, at| json!([{ "name": format!("c{at}"), "version": "1", "components": inner }]),
        );
        cyclonedx(inner)
    };
    assert_eq!(read_value(&nested(32)).components.len(), 31);
    let fault = fault_of(&nested(33));
    assert!(fault.contains("nested more than 32 deep"), "{fault}");
    let open = "[{\"components\":".repeat(100_000);
    let deep =
        format!("{{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.5\",\"components\":{open}");
    assert!(read(deep.as_bytes()).is_err());
}
