"""The names of torch that are not done yet, by place. Names may only be taken out."""

NOT_YET = {
    "torch": """
        adaptive_avg_pool1d adaptive_max_pool1d affine_grid_generator alpha_dropout alpha_dropout_ are_deterministic_algorithms_enabled
        avg_pool1d bartlett_window batch_norm bilinear binary_cross_entropy_with_logits binomial blackman_window cdist celu_
        channel_shuffle cond constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d
        conv_transpose2d conv_transpose3d convolution cosine_embedding_loss cosine_similarity ctc_loss digamma dropout dropout_ embedding
        embedding_bag embedding_renorm_ empty_permuted feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_
        from_dlpack from_file geqrf get_deterministic_debug_mode get_float32_matmul_precision grid_sampler grid_sampler_2d
        grid_sampler_3d group_norm gru gru_cell hamming_window hann_window hash_tensor hinge_embedding_loss igamma igammac
        instance_norm is_deterministic_algorithms_warn_only_enabled is_distributed is_warn_always_enabled istft kaiser_window
        kl_div layer_norm lgamma lobpcg logit logit_ lstm lstm_cell margin_ranking_loss
        max_pool1d max_pool1d_with_indices max_pool2d max_pool3d mvlgamma native_batch_norm native_channel_shuffle native_dropout native_group_norm
        native_layer_norm native_norm norm_except_dim pairwise_distance pca_lowrank pdist pixel_shuffle
        pixel_unshuffle poisson_nll_loss polygamma rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell rrelu rrelu_
        segment_reduce selu_ set_anomaly_enabled set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_warn_always
        slice_inverse stft svd_lowrank sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum threshold_ to_dlpack
        triplet_margin_loss use_deterministic_algorithms while_loop xlogy xlogy_""",
    "Tensor": """
        addbmm_ apply_ bernoulli const_data_ptr digamma digamma_ dim_order geqrf
        hash_tensor igamma igamma_ igammac igammac_ index is_distributed is_shared istft lgamma
        lgamma_ logit logit_ map2_ map_ module_load multinomial mvlgamma mvlgamma_
        polygamma polygamma_ resize resize_as share_memory_ slice_inverse stft storage
        storage_type xlogy xlogy_""",
    "linalg": "ldl_factor ldl_factor_ex ldl_solve",
    "fft": "",
    "special": """
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
        digamma entr erf erfc exp2 expit expm1 gammainc gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e
        laguerre_polynomial_l legendre_polynomial_p log1p log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
        modified_bessel_k0 modified_bessel_k1 multigammaln ndtr polygamma psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc softmax
        xlog1py xlogy zeta""",
}
