//! Images of floor plans: their first bytes tell the format, whatever the client says.

use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest image.
pub const MAX_IMAGE_BYTES: usize = 2 * 1024 * 1024;

/// The format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FloorPlanImageType")]
pub enum ImageType {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/webp")]
    Webp,
}

text_enum!(ImageType { Png = "image/png", Jpeg = "image/jpeg", Webp = "image/webp" });

impl ImageType {
    /// The format by the first bytes; None for any other. Markup such as SVG could hold scripts.
    pub fn of(image: &[u8]) -> Option<Self> {
        match image {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::Webp),
            _ => None,
        }
    }
}

/// The most pixels of an image: a small file may unpack to more memory than a browser has.
pub const MAX_PIXELS: usize = 16_000_000;

/// Width and height of an image, by its header; None if it has none.
pub fn pixels_of(image: &[u8]) -> Option<(usize, usize)> {
    let size = imagesize::blob_size(image).ok()?;
    (size.width > 0 && size.height > 0).then_some((size.width, size.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_say_how_large_they_are() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";
        assert_eq!(pixels_of(png), Some((640, 480)));
        let webp = b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        assert_eq!(pixels_of(webp), Some((640, 480)));
        let jpeg =
            b"\xff\xd8\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";
        assert_eq!(pixels_of(jpeg), Some((640, 480)));
        for none in [&png[..12], &webp[..14], &jpeg[..5], b""] {
            assert_eq!(pixels_of(none), None, "{none:?}");
        }
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        assert_eq!(
            ImageType::of(b"\x89PNG\r\n\x1a\nrest"),
            Some(ImageType::Png)
        );
        assert_eq!(
            ImageType::of(b"\xff\xd8\xff\xe0rest"),
            Some(ImageType::Jpeg)
        );
        assert_eq!(
            ImageType::of(b"RIFF\x01\x02\x03\x04WEBPVP8 "),
            Some(ImageType::Webp)
        );
        for other in [
            &b""[..],
            b"\x89PNG",
            b"RIFF\x01\x02\x03\x04WAVE",
            b"<svg xmlns=''/>",
            b"GIF89a",
            b"<!doctype html>",
        ] {
            assert_eq!(ImageType::of(other), None, "{other:?}");
        }
    }
}
