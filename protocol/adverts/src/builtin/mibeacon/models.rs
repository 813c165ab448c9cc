//! Product identifiers of MiBeacon and the models that have them.

/// The model of a product.
pub fn model(product: u16) -> Option<&'static str> {
    let at = MODELS.binary_search_by_key(&product, |(id, _)| *id).ok()?;
    MODELS.get(at).map(|(_, model)| *model)
}

/// Sorted by identifier.
static MODELS: &[(u16, &str)] = &[
    (0x0083, "YM-K1501"),
    (0x0098, "HHCCJCY01"),
    (0x00DB, "MMC-T201-1"),
    (0x0113, "YM-K1501EU"),
    (0x0153, "YLYK01YL"),
    (0x015D, "HHCCPOT002"),
    (0x01AA, "LYWSDCGQ"),
    (0x02DF, "JQJCY01YM"),
    (0x0347, "CGG1"),
    (0x0380, "DSL-C08"),
    (0x0387, "MHO-C401"),
    (0x0391, "MMC-W505"),
    (0x03B6, "YLKG07YL/YLKG08YL"),
    (0x03BC, "GCLS002"),
    (0x03BF, "YLYB01YL-BHFRC"),
    (0x03D6, "CGH1"),
    (0x03DD, "MUE4094RT"),
    (0x040A, "WX08ZM"),
    (0x045B, "LYWSD02"),
    (0x045C, "V-SK152"),
    (0x0489, "M1S-T500"),
    (0x04E1, "XMMF01JQD"),
    (0x04E6, "YLYK01YL-VENFAN"),
    (0x04E9, "MJZNMSQ01YD"),
    (0x055B, "LYWSD03MMC"),
    (0x0576, "CGD1"),
    (0x0599, "MJZNMS03LM"),
    (0x066F, "CGDK2"),
    (0x068E, "YLYK01YL-FANCL"),
    (0x069E, "ZNMS16LM"),
    (0x069F, "ZNMS17LM"),
    (0x06D3, "MHO-C303"),
    (0x0784, "XMZNMS04LM"),
    (0x07BF, "YLAI003"),
    (0x07F6, "MJYD02YL"),
    (0x0806, "T700"),
    (0x0863, "SJWS01LM"),
    (0x098B, "MCCGQ02HL"),
    (0x098C, "XMZNMST02YD"),
    (0x0997, "JTYJGD03MI"),
    (0x0A83, "CGPR1"),
    (0x0A8D, "RTCGQ02LM"),
    (0x0B48, "CGG1-ENCRYPTED"),
    (0x0C3C, "CGC1"),
    (0x0DE7, "SU001-T"),
    (0x0DFD, "K9B-3BTN"),
    (0x0E39, "XMZNMS08LM"),
    (0x11C2, "Lockin-SV40"),
    (0x1203, "XMWSDJ04MMC"),
    (0x1568, "K9B-1BTN"),
    (0x1569, "K9B-2BTN"),
    (0x16E4, "LYWSD02MMC"),
    (0x1790, "T700"),
    (0x1889, "MS1BB(MI)"),
    (0x1949, "XMWXKG01YL"),
    (0x1C10, "K9BB-1BTN"),
    (0x2387, "XMWXKG01LM"),
    (0x2542, "LYWSD02MMC"),
    (0x2832, "MJWSD05MMC"),
    (0x2AEB, "HS1BB(MI)"),
    (0x30D9, "MJTZC01YM"),
    (0x3531, "XMPIRO2SXS"),
    (0x38BB, "PTX_YK1_QMIMB"),
    (0x3A61, "KS1"),
    (0x3BD5, "MJTZC01YM"),
    (0x3E17, "KS1BP"),
    (0x3F0F, "RS1BB(MI)"),
    (0x3F4C, "PS1BB"),
    (0x45C9, "MJTZC02YM"),
    (0x4683, "XMOSB01XS"),
    (0x48CF, "MJTZC01YM"),
    (0x4B05, "MJTZC03YM"),
    (0x4C04, "MJTZC02YM"),
    (0x4C47, "MJWSD05MMC"),
    (0x4C60, "XMPIRO2GSXS"),
    (0x4DCB, "MJTZC02YM"),
    (0x4F59, "CGDK3"),
    (0x50FB, "ES3"),
    (0x520B, "KS2BB"),
    (0x55B5, "MJWSD06MMC"),
    (0x5968, "XMWS01XS"),
    (0x59FA, "M2457B1"),
    (0x59FB, "M2456B1"),
    (0x59FC, "M2456B1"),
    (0x5BEA, "MJWSD06MMC"),
    (0x5DB1, "MBS17"),
    (0x6188, "M2456B1"),
    (0x6375, "SJWS02LM"),
    (0x6A0F, "ES5BB"),
    (0x78D1, "MC-COMM"),
    (0x78DB, "ESM787"),
];

/// The meaning of the first two bytes of a button's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buttons {
    /// A model with one button, or an unknown model.
    Plain,
    /// A cube that is turned.
    Cube,
    /// A dial that is turned and pressed.
    Dimmer,
    /// A remote control: the number of the button from 0 on.
    Remote,
    /// Wall switches of one, two and three buttons: a number for each combination.
    Wall1,
    Wall2,
    Wall3,
}

pub fn buttons(model: &str) -> Buttons {
    match model {
        "XMMF01JQD" => Buttons::Cube,
        "YLKG07YL/YLKG08YL" => Buttons::Dimmer,
        "YLYK01YL" | "YLYK01YL-FANCL" | "YLYK01YL-VENFAN" | "YLYB01YL-BHFRC" => Buttons::Remote,
        "K9B-1BTN" => Buttons::Wall1,
        "K9B-2BTN" => Buttons::Wall2,
        "K9B-3BTN" => Buttons::Wall3,
        _ => Buttons::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_sorted() {
        for pair in MODELS.windows(2) {
            assert!(pair[0].0 < pair[1].0);
        }
        assert_eq!(model(0x01AA), Some("LYWSDCGQ"));
        assert_eq!(model(0xFFFF), None);
    }
}
