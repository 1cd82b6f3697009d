"""Recurrent networks."""

PACKED = "R.pack_padded_sequence(wave(4, 3, 2), [4, 2, 2])"
UNSORTED = "R.pack_padded_sequence(wave(3, 4, 2), [2, 4, 1], batch_first=True, enforce_sorted=False)"
CASES = {
    "RNN(2, 3)": ["wave(4, 3, 2)", "wave(4, 2), wave(1, 3, at=1)", "wave(1, 1, 2), wave(1, 1, 3, at=1)", PACKED, "wave(2, 0, 2)"],
    "RNN(2, 3, 2, 'relu', False, True, 0.0, True)": ["wave(3, 4, 2)", "wave(4, 2), wave(4, 3)", UNSORTED, f"{UNSORTED}, wave(4, 3, 3)"],
    "LSTM(2, 3)": ["wave(4, 3, 2)", "wave(4, 2), (wave(1, 3), wave(1, 3, at=1))", PACKED],
    "LSTM(2, 3, num_layers=2, batch_first=True, bidirectional=True)": ["wave(2, 3, 2)", "wave(3, 2)", UNSORTED],
    "LSTM(2, 4, 2, proj_size=3, bias=False)": ["wave(2, 3, 2)", f"{PACKED}, (wave(2, 3, 3), wave(2, 3, 4, at=1))"],
    "LSTM(2, 3, proj_size=2, bidirectional=True)": ["wave(2, 3, 2), (wave(2, 3, 2), wave(2, 3, 3))", UNSORTED],
    "GRU(2, 3)": ["wave(4, 3, 2)", "wave(4, 2), wave(1, 3)", PACKED],
    "GRU(2, 3, 2, bidirectional=True, batch_first=True, bias=False)": ["wave(2, 3, 2), wave(4, 2, 3)", UNSORTED],
    "GRU(2, 3, 2, dropout=1.0)": "wave(2, 3, 2)",
    "RNNCell(2, 3)": ["wave(4, 2)", "wave(2), wave(3)"],
    "RNNCell(2, 3, False, 'relu')": "wave(4, 2), wave(4, 3, at=1)",
    "LSTMCell(2, 3)": ["wave(4, 2)", "wave(2), (wave(3), wave(3, at=1))"],
    "LSTMCell(2, 3, bias=False)": "wave(4, 2), (wave(4, 3), wave(4, 3, at=1))",
    "GRUCell(2, 3)": ["wave(4, 2)", "wave(2), wave(3)", "wave(4, 2), wave(4, 3)"],
}
_SEQUENCES = "[wave(2, 3), wave(4, 3), wave(1, 3)]"
FUNCTIONS = {
    "R.pad_sequence": ["[wave(2, 3), wave(4, 3)]", "[wave(2), wave(1)], True, 0.5, padding_side='left'", "wave(2, 3)", "(x for x in wave(2, 3, 4))"],
    "R.pack_sequence": ["[wave(4, 3), wave(2, 3)]", f"{_SEQUENCES}, enforce_sorted=False"],
    "R.unpack_sequence": [PACKED, UNSORTED],
    "R.pad_packed_sequence": [PACKED, UNSORTED, f"{UNSORTED}, batch_first=True, padding_value=2.5, total_length=6"],
    "R.unpad_sequence": ["wave(2, 3, 4), t([3, 2]), True", "wave(2, 3, 4).clone(), t([2, 1, 1])"],
    "R.invert_permutation": ["t([2, 0, 1])", "None"],
    "R.PackedSequence": ["(wave(3), t([2, 1]))", "wave(3), t([2, 1]), t([1, 0])"],
    "m.lstm": ["wave(4, 2, 1), (wave(1, 2, 1), wave(1, 2, 1)), [wave(4, 1), wave(4, 1), wave(4), wave(4)], True, 1, 0., True, False, False",
               "wave(3, 1), t([2, 1]), (wave(1, 2, 1), wave(1, 2, 1)), [wave(4, 1), wave(4, 1)], False, 1, 0., True, False"],
    "m.gru": "wave(2, 4, 1), wave(2, 2, 1), [wave(3, 1), wave(3, 1)] * 2, False, 1, 0., True, True, True",
    "m.rnn_tanh": "wave(4, 2, 1), wave(1, 2, 1), [wave(1, 1), wave(1, 1)], False, 1, 0., True, False, False",
    "m.rnn_relu": "wave(3, 1), t([2, 1]), wave(1, 2, 1), [wave(1, 1), wave(1, 1)], False, 1, 0., True, False",
    **dict.fromkeys(["m.rnn_tanh_cell", "m.rnn_relu_cell"], ["wave(3, 2), wave(3, 1), wave(1, 2), wave(1, 1)",
                                                             "wave(3, 2), wave(3, 1), wave(1, 2), wave(1, 1), wave(1), wave(1, at=1)"]),
    "m.gru_cell": "wave(3, 2), wave(3, 1), wave(3, 2), wave(3, 1), wave(3), wave(3, at=1)",
    "m.lstm_cell": "wave(3, 2), (wave(3, 1), wave(3, 1)), wave(4, 2), wave(4, 1)",
}
EVALUATED = {"RNN(2, 3, 3, dropout=0.5)": "wave(4, 3, 2)"}
REFUSED = {
    "LSTM(2, 3)": ["wave(4, 3, 3)", "wave(4)", "wave(0, 3, 2)", "wave(4, 3, 2).float()", "wave(4, 3, 2), (wave(1, 3, 3), wave(1, 3, 2))",
                   "wave(4, 3, 2), (wave(1, 3), wave(1, 3))", "wave(4, 2), (wave(1, 1, 3), wave(1, 1, 3))",
                   "wave(4, 3, 2), (wave(1, 2, 3), wave(1, 3, 3))",],
    "GRU(2, 3)": [f"{PACKED}, wave(1, 2, 3)", "R.PackedSequence(wave(4, 3, 2), t([2, 2]))",
                  "wave(4, 3, 3)", "wave(4)", "wave(4, 3, 2), wave(1, 2, 3)", "wave(4, 3, 2), wave(1, 3)", "wave(4, 2), wave(1, 1, 3)"],
    "RNN(2, 3, batch_first=True)": ["wave(4)", "wave(3, 4, 2), wave(1, 4, 3)"],
    **dict.fromkeys([
        "RNN(2, 3, nonlinearity='foo')", "RNN(2, 3, proj_size=1)", "GRU(2, 3, proj_size=1)", "LSTM(2, 3, proj_size=3)", "LSTM(2, 3, proj_size=-1)",
        "LSTM(0, 3)", "LSTM(2, 0)", "LSTM(2, 3, 0)", "LSTM(2.5, 3)", "LSTM(2, 3, bias=1)", "LSTM(2, 3, batch_first=0)", "LSTM(2, 3, 2, dropout=2)",
        "LSTM(2, 3, 2, dropout=True)", "RNNBase('NO', 2, 3)"], []),
    "RNNCell(2, 3, nonlinearity='foo')": ["wave(4, 2)"],
    "LSTMCell(2, 3)": ["wave(3, 4)", "wave(3, 2), (wave(2, 3), wave(3, 3))", "wave(3, 2), (wave(3, 3), wave(3, 2))", "wave(3, 2, 1)",
                       "wave(3, 2), (wave(3, 3), wave(3, 3, 1))"],
    "m.rnn_tanh_cell": ["wave(3, 2), wave(3, 4), wave(4, 2), wave(5, 4)", "wave(3, 2), wave(3, 4), wave(5, 2), wave(4, 4)"],
    "m.gru_cell": ["wave(3, 2), wave(3, 4), wave(8, 2), wave(12, 4)"],
    "R.pack_padded_sequence": ["wave(4, 3, 2), [4, 3]", "wave(4, 3, 2), [4, 5, 1]", "wave(4, 3, 2), [4, 3, 0]", "wave(4, 3, 2), [[1]]",
                               "wave(0, 3), [0, 0, 0]"],
    "R.pad_sequence": ["[]", "3", "[wave(2), wave(3)], padding_side='foo'"],
    "R.pad_packed_sequence": [f"{PACKED}, total_length=2"],
    "R.pack_sequence": ["[wave(2), wave(3)]"],
    "R.PackedSequence": ["wave(3)"],
    "GRUCell(2, 3)": ["wave(3, 2), wave(3, 2)", "wave(3, 2), wave(3, 3, 1)"],
}
