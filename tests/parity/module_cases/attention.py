"""Attention and transformers."""

_CAUSAL = "nn.Transformer.generate_square_subsequent_mask(3)"
_LATER = "t([[False, True, True], [False, False, True], [False, False, False]])"
_PADDED = "t([[False, False, True], [False, True, True]])"
_X = "wave(3, 2, 4), wave(3, 2, 4, at=1), wave(3, 2, 4, at=2)"
CASES = {
    "MultiheadAttention(4, 2)": [
        _X, "wave(3, 4), wave(2, 4), wave(2, 4)", f"{_X}, need_weights=False", f"{_X}, average_attn_weights=False",
        f"{_X}, {_PADDED}, attn_mask={_LATER}", f"{_X}, attn_mask=wave(3, 3), key_padding_mask=wave(2, 3)", f"{_X}, attn_mask=wave(4, 3, 3)",
        f"{_X}, {_PADDED}, False, wave(3, 3)", f"{_X}, attn_mask={_CAUSAL}, is_causal=True, need_weights=False",
        f"{_X}, attn_mask={_CAUSAL}, is_causal=True"],
    "MultiheadAttention(4, 2, bias=False, add_bias_kv=True, batch_first=True)": [_X, f"{_X}, t([[False, True]] * 3), True, t([[True, False]] * 2)"],
    "MultiheadAttention(4, 1, add_zero_attn=True, kdim=3, vdim=2)": ["wave(3, 2, 4), wave(5, 2, 3), wave(5, 2, 2)",
                                                                     "wave(3, 4), wave(3, 3), wave(3, 2), t([False] * 3), True, wave(1, 3, 3)"],
    "MultiheadAttention(4, 4, add_zero_attn=True, add_bias_kv=True, vdim=2)":
        f"wave(3, 2, 4), wave(3, 2, 4), wave(3, 2, 2), {_PADDED}, False, {_LATER}",
    "TransformerEncoderLayer(4, 2, 5, 0.0)": ["wave(3, 2, 4)", f"wave(3, 2, 4), {_CAUSAL}, {_PADDED}", f"wave(3, 4), {_LATER}"],
    "TransformerEncoderLayer(4, 1, 5, 0.0, 'gelu', 0.1, True, True, False)": ["wave(2, 3, 4)", f"wave(2, 3, 4), {_CAUSAL}, is_causal=True"],
    "TransformerEncoderLayer(4, 1, 5, 0.0, nn.Tanh())": "wave(2, 3, 4)",
    "TransformerDecoderLayer(4, 2, 5, 0.0)": ["wave(3, 2, 4), wave(2, 2, 4)", f"wave(3, 2, 4), wave(3, 2, 4, at=1), {_LATER}, {_CAUSAL}, {_PADDED}"],
    "TransformerDecoderLayer(4, 1, 5, 0.0, nn.functional.gelu, norm_first=True, batch_first=True, bias=False)": "wave(2, 3, 4), wave(2, 1, 4)",
    "TransformerEncoder(nn.TransformerEncoderLayer(4, 1, 5, 0.0), 2)": [
        "wave(3, 2, 4)", f"wave(3, 2, 4), {_CAUSAL}", f"wave(3, 2, 4), {_LATER}, {_PADDED}"],
    "TransformerDecoder(nn.TransformerDecoderLayer(4, 1, 5, 0.0), 1, nn.LayerNorm(4))": f"wave(3, 2, 4), wave(2, 2, 4), {_CAUSAL}",
    "Transformer(4, 1, 1, 1, 5, 0.0)": ["wave(3, 2, 4), wave(3, 2, 4)", f"wave(3, 4), wave(2, 4), {_CAUSAL}"],
    "Transformer(4, 2, 1, 1, 5, 0.0, batch_first=True, custom_encoder="
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, 3, 0., 'gelu', 1e-5, True), 1))":
        f"wave(2, 3, 4), wave(2, 3, 4), None, {_LATER}, src_key_padding_mask={_PADDED}",
}
EVALUATED = {
    "MultiheadAttention(4, 2, dropout=0.5)": _X,
    "TransformerEncoderLayer(4, 1, 5)": "wave(2, 3, 4)",
    "TransformerDecoderLayer(4, 1, 5, 0.4)": "wave(2, 3, 4), wave(2, 3, 4)",
}
FUNCTIONS = {"nn.Transformer.generate_square_subsequent_mask": ["3", "2, dtype=m.float32", "2, dtype=m.bool"]}
_FORWARD = "wave(3, 2, 4), wave(3, 2, 4), wave(3, 2, 4), 4, 2, {}, None, {}, False, 0.0, wave(4, 4), None"
REFUSED = {
    "F.scaled_dot_product_attention": [f"*[wave(2, 3)] * 3, wave(2, 2).to(m.{kind})" for kind in ("int64", "uint8", "float16", "complex64")] + [
        "*[wave(2, 3).half()] * 3, wave(2, 2)", "wave(2, 3), wave(2, 3).float(), wave(2, 3)"],
    "MultiheadAttention(4, 2)": [
        "wave(4), wave(4), wave(4)", "wave(3, 2, 4), wave(2, 4), wave(2, 4)", "wave(3, 4), wave(3, 2, 4), wave(3, 2, 4)",
        "wave(3, 2, 4), wave(3, 2, 4), wave(2, 2, 4)", "wave(3, 2, 6), wave(3, 2, 6), wave(3, 2, 6)", f"{_X}, t([[0, 1, 1]])",
        f"{_X}, t([[False, True]] * 2)", f"{_X}, t([[False, True, True]])", f"{_X}, attn_mask=wave(3)", f"{_X}, attn_mask=wave(2, 2)",
        f"{_X}, attn_mask=wave(2, 3, 3)", f"{_X}, is_causal=True", "wave(3, 4), wave(3, 4), wave(3, 4), attn_mask=wave(1, 3, 3)",
        "wave(3, 4), wave(3, 4), wave(3, 4), wave(1, 3)", "wave(3, 4), wave(3, 4), wave(3, 4), attn_mask=wave(3)"],
    "MultiheadAttention(4, 2, kdim=3)": ["wave(3, 2, 4), wave(3, 2, 4), wave(3, 2, 4)", "wave(3, 2, 4), wave(3, 2, 3), wave(2, 2, 4)"],
    "F.multi_head_attention_forward": [
        _FORWARD.format("None", "None, None"), _FORWARD.format("wave(12, 4)", "wave(1, 1, 4), None"),
        _FORWARD.format("wave(12, 4)", "None, wave(1, 1, 4)"),
        _FORWARD.format("None", "None, None") + ", use_separate_proj_weight=True",
        _FORWARD.format("wave(12, 4)", "wave(1, 1, 4), wave(1, 1, 4)") + ", static_v=wave(4, 3, 2)",
        _FORWARD.format("wave(12, 4)", "None, None") + ", static_k=wave(3, 3, 2)",
        _FORWARD.format("wave(12, 4)", "None, None") + ", static_v=wave(4, 3, 3)"],
    "Transformer(4, 1, 1, 1, 5)": ["wave(3, 2, 4), wave(3, 1, 4)", "wave(3, 2, 4), wave(3, 2, 5)"],
    "Transformer(4, 1, 1, 1, 5, batch_first=True)": ["wave(3, 2, 4), wave(1, 2, 4)"],
    **dict.fromkeys(["MultiheadAttention(4, 3)", "MultiheadAttention(0, 3)", "MultiheadAttention(4, -1)",
                     "TransformerEncoderLayer(4, 1, 5, 0., 'no')", "TransformerDecoderLayer(4, 3)"], []),
}
