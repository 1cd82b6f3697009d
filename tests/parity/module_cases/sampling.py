"""Interpolation to another size."""

CASES = {
    "Upsample(5)": ["wave(1, 2, 3)", "wave(1, 2, 3, 2)", "wave(1, 1, 2, 3, 2)"],
    "Upsample(scale_factor=2)": "wave(1, 2, 3, 2)",
    "Upsample((4, 3), mode='bilinear')": "wave(1, 2, 3, 2)",
    "Upsample(scale_factor=(1.7, 0.6), mode='bicubic', align_corners=True)": "wave(1, 2, 3, 4)",
    "Upsample(scale_factor=1.6, mode='linear', recompute_scale_factor=True)": "wave(1, 2, 3)",
    "Upsample(3, mode='trilinear', align_corners=False)": "wave(1, 1, 2, 3, 2)",
    "Upsample(2, mode='area')": "wave(1, 2, 3, 5)",
    "UpsamplingNearest2d(scale_factor=1.5)": "wave(1, 2, 3, 3)",
    "UpsamplingBilinear2d(size=(5, 3))": "wave(1, 2, 3, 3)",
}
REFUSED = {
    "Upsample()": ["wave(1, 2, 3)"], "Upsample(2, 2.0)": ["wave(1, 2, 3)"], "Upsample((2, 2))": ["wave(1, 2, 3)"],
    "Upsample(scale_factor=(2.0, 2.0))": ["wave(1, 2, 3)"],
    "Upsample(2, mode='no')": ["wave(1, 2, 3)"], "Upsample(2, mode='bilinear')": ["wave(1, 2, 3)"],
    "Upsample(2, mode='bicubic')": ["wave(1, 2, 3)"], "Upsample(2, align_corners=True)": ["wave(1, 2, 3)"], "Upsample(0)": ["wave(1, 2, 3, 3)"],
    "Upsample(2, recompute_scale_factor=True)": ["wave(1, 2, 3)"], "Upsample(2)": ["wave(2, 3)", "wave(1, 0, 3, 3)"],
    "Upsample((2.5, 1))": ["wave(1, 2, 3, 3)"],
}
