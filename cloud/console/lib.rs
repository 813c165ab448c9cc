//! The built files of the web console. The repository has them in `dist/` as text, of which git
//! stores the differences; `build.rs` compresses them once, as browsers take them.

/// A hash of all files: it changes when any of them does.
pub const PAGE_HASH: &str = env!("PAGE_HASH");

/// Each file, compressed with gzip, by its name: `index.html`, the page, and `assets/...`, whose
/// names contain the hash.
pub static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::{FILES, PAGE_HASH};

    fn text(gzipped: &[u8]) -> String {
        let mut text = String::new();
        let read = GzDecoder::new(gzipped).read_to_string(&mut text);
        read.expect("a compressed text");
        text
    }

    #[test]
    fn files_refer_to_files_that_exist() {
        let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        let mut references = 0;
        for (file, gzipped) in FILES {
            let text = text(gzipped);
            for (end, _) in text.match_indices(PAGE_HASH) {
                let (before, after) = text.split_at(end);
                let begin = before.rfind(['/', '"', '`', '\'']).map_or(0, |at| at + 1);
                let length = after.find(['"', '`', '\'', ')']).unwrap_or(after.len());
                let (stem, rest) = (&before[begin..], &after[..length]);
                let name = format!("assets/{stem}{rest}");
                assert!(names.contains(&name.as_str()), "{file} refers to {name}");
                references += 1;
            }
        }
        assert!(references > FILES.len(), "{references} references");
    }

    #[test]
    fn all_names_but_that_of_the_page_contain_the_hash() {
        let without = FILES.iter().filter(|(name, _)| !name.contains(PAGE_HASH));
        let without: Vec<&str> = without.map(|(name, _)| *name).collect();
        assert_eq!(without, ["index.html"]);
    }
}
