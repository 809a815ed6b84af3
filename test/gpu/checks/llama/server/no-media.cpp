// Calls that the server makes only for a model with a projector for images or audio: they end the process.
#include <cstdlib>

#define ABORTS(name)        \
    extern "C" void name() { \
        std::abort();       \
    }

ABORTS(mtmd_batch_add_chunk)
ABORTS(mtmd_batch_encode)
ABORTS(mtmd_batch_free)
ABORTS(mtmd_batch_get_output_embd)
ABORTS(mtmd_batch_init)
ABORTS(mtmd_bitmap_free)
ABORTS(mtmd_helper_bitmap_init_from_buf)
ABORTS(mtmd_helper_decode_image_chunk)
ABORTS(mtmd_helper_support_video)
ABORTS(mtmd_helper_video_free)
ABORTS(mtmd_init_from_file)
ABORTS(mtmd_input_chunk_copy)
ABORTS(mtmd_input_chunk_free)
ABORTS(mtmd_input_chunk_get_id)
ABORTS(mtmd_input_chunk_get_n_pos)
ABORTS(mtmd_input_chunk_get_n_tokens)
ABORTS(mtmd_input_chunk_get_placeholder)
ABORTS(mtmd_input_chunk_get_tokens_text)
ABORTS(mtmd_input_chunk_get_type)
ABORTS(mtmd_input_chunk_load)
ABORTS(mtmd_input_chunk_save)
ABORTS(mtmd_input_chunks_free)
ABORTS(mtmd_input_chunks_get)
ABORTS(mtmd_input_chunks_init)
ABORTS(mtmd_input_chunks_size)
ABORTS(mtmd_support_audio)
ABORTS(mtmd_support_vision)
ABORTS(mtmd_tokenize)
