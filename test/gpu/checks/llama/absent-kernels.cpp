// The kernels that CMakeLists.txt leaves out: a card with tensor cores does not use them for models of F16 and Q8_0 with
// heads of 64 or 128. A model of another kind ends the process here.
#include "ggml-impl.h"

struct CUstream_st;
struct ggml_backend_cuda_context;
struct mmq_args;

template <ggml_type type>
void mul_mat_q_case(ggml_backend_cuda_context & context, const mmq_args & arguments, CUstream_st * stream);
template <int key_length, int value_length>
void ggml_cuda_flash_attn_ext_tile_case(ggml_backend_cuda_context & context, ggml_tensor * result);
template <int key_length, int value_length, int columns1, int columns2>
void ggml_cuda_flash_attn_ext_mma_f16_case(ggml_backend_cuda_context & context, ggml_tensor * result);

#define ABSENT(name) GGML_ABORT("%s", "this build of llama.cpp has no kernel " name)

#define NO_MMQ(type)                                                                                        \
    template <> void mul_mat_q_case<type>(ggml_backend_cuda_context &, const mmq_args &, CUstream_st *) {   \
        ABSENT("for matrices of " #type);                                                                   \
    }
NO_MMQ(GGML_TYPE_Q1_0)
NO_MMQ(GGML_TYPE_Q2_0)
NO_MMQ(GGML_TYPE_Q4_0)
NO_MMQ(GGML_TYPE_Q4_1)
NO_MMQ(GGML_TYPE_Q5_0)
NO_MMQ(GGML_TYPE_Q5_1)
NO_MMQ(GGML_TYPE_Q2_K)
NO_MMQ(GGML_TYPE_Q3_K)
NO_MMQ(GGML_TYPE_Q4_K)
NO_MMQ(GGML_TYPE_Q5_K)
NO_MMQ(GGML_TYPE_Q6_K)
NO_MMQ(GGML_TYPE_IQ1_S)
NO_MMQ(GGML_TYPE_IQ2_XXS)
NO_MMQ(GGML_TYPE_IQ2_XS)
NO_MMQ(GGML_TYPE_IQ2_S)
NO_MMQ(GGML_TYPE_IQ3_XXS)
NO_MMQ(GGML_TYPE_IQ3_S)
NO_MMQ(GGML_TYPE_IQ4_NL)
NO_MMQ(GGML_TYPE_IQ4_XS)
NO_MMQ(GGML_TYPE_MXFP4)
NO_MMQ(GGML_TYPE_NVFP4)

#define NO_TILE(key, value)                                                                                       \
    template <> void ggml_cuda_flash_attn_ext_tile_case<key, value>(ggml_backend_cuda_context &, ggml_tensor *) { \
        ABSENT("for attention without tensor cores");                                                             \
    }
NO_TILE(40, 40)
NO_TILE(64, 64)
NO_TILE(72, 72)
NO_TILE(80, 80)
NO_TILE(96, 96)
NO_TILE(112, 112)
NO_TILE(128, 128)
NO_TILE(192, 128)
NO_TILE(256, 256)
NO_TILE(320, 256)
NO_TILE(512, 512)
NO_TILE(576, 512)

#define NO_MMA(key, value, columns1, columns2)                                           \
    template <>                                                                          \
    void ggml_cuda_flash_attn_ext_mma_f16_case<key, value, columns1, columns2>(          \
        ggml_backend_cuda_context &, ggml_tensor *) {                                    \
        ABSENT("for attention with heads of " #key);                                     \
    }
#define NO_MMA_OF_COLUMNS2(key, value, columns2)     \
    NO_MMA(key, value, 8 / columns2, columns2)       \
    NO_MMA(key, value, 16 / columns2, columns2)      \
    NO_MMA(key, value, 32 / columns2, columns2)      \
    NO_MMA(key, value, 64 / columns2, columns2)
#define NO_MMA_OF_HEAD(length)            \
    NO_MMA_OF_COLUMNS2(length, length, 1) \
    NO_MMA_OF_COLUMNS2(length, length, 2) \
    NO_MMA_OF_COLUMNS2(length, length, 4) \
    NO_MMA_OF_COLUMNS2(length, length, 8)
NO_MMA_OF_HEAD(80)
NO_MMA_OF_HEAD(96)
NO_MMA_OF_HEAD(112)
NO_MMA_OF_HEAD(256)
NO_MMA_OF_COLUMNS2(512, 512, 2)
NO_MMA_OF_COLUMNS2(512, 512, 4)
NO_MMA_OF_COLUMNS2(512, 512, 8)
NO_MMA_OF_COLUMNS2(192, 128, 8)
NO_MMA(192, 128, 1, 16)
NO_MMA(192, 128, 2, 16)
NO_MMA(192, 128, 4, 16)
NO_MMA(320, 256, 1, 32)
NO_MMA(320, 256, 2, 32)
NO_MMA_OF_COLUMNS2(576, 512, 4)
NO_MMA(576, 512, 1, 16)
NO_MMA(576, 512, 2, 16)
NO_MMA(576, 512, 4, 16)
NO_MMA(576, 512, 1, 32)
NO_MMA(576, 512, 2, 32)
