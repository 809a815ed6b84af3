import { openRandom, type Tensor, tensor, writeGguf } from '../../bin/gguf-writer.ts'

/** Pixels of a side of the image that the encoder sees, and of one of its patches. */
const imageSize = 32
const patchSize = 8
const width = 32
const feedForward = 32
const layers = 2
/** Width of the toy chat models. */
const textWidth = 64

/**
 * An image encoder for the toy chat models, in the form of LLaVA's (`mmproj`), with random weights: different images
 * become different embeddings. Keys and names of tensors: `tools/mtmd/clip-impl.h` of llama.cpp.
 */
export function tinyProjector(seed = 1): Buffer {
  const { normal } = openRandom(seed)
  const weights = (name: string, shape: readonly number[]): Tensor =>
    tensor(name, shape, () => normal() / Math.sqrt(shape[0]!))
  const bias = (name: string, size: number) => tensor(name, [size], 0)
  const norm = (name: string) => [tensor(`${name}.weight`, [width], 1), bias(`${name}.bias`, width)]
  const linear = (name: string, inputs: number, outputs: number) => [
    weights(`${name}.weight`, [inputs, outputs]),
    bias(`${name}.bias`, outputs),
  ]
  const block = (at: number) => [
    ...['attn_q', 'attn_k', 'attn_v', 'attn_out'].flatMap(name => linear(`v.blk.${at}.${name}`, width, width)),
    ...['ln1', 'ln2'].flatMap(name => norm(`v.blk.${at}.${name}`)),
    ...linear(`v.blk.${at}.ffn_up`, width, feedForward),
    ...linear(`v.blk.${at}.ffn_down`, feedForward, width),
  ]
  return writeGguf(
    {
      'general.architecture': ['string', 'clip'],
      'general.name': ['string', 'tiny-projector'],
      'general.file_type': ['u32', 0],
      'clip.has_vision_encoder': ['bool', true],
      'clip.projector_type': ['string', 'mlp'],
      'clip.use_gelu': ['bool', true],
      'clip.vision.image_size': ['u32', imageSize],
      'clip.vision.patch_size': ['u32', patchSize],
      'clip.vision.embedding_length': ['u32', width],
      'clip.vision.feed_forward_length': ['u32', feedForward],
      'clip.vision.block_count': ['u32', layers],
      'clip.vision.projection_dim': ['u32', textWidth],
      'clip.vision.attention.head_count': ['u32', 4],
      'clip.vision.attention.layer_norm_epsilon': ['f32', 1e-5],
      'clip.vision.image_mean': ['f32[]', [0.5, 0.5, 0.5]],
      'clip.vision.image_std': ['f32[]', [0.5, 0.5, 0.5]],
    },
    [
      tensor('v.class_embd', [width], normal),
      weights('v.patch_embd.weight', [patchSize, patchSize, 3, width]),
      tensor('v.position_embd.weight', [width, (imageSize / patchSize) ** 2 + 1], () => normal() / 10),
      ...norm('v.pre_ln'),
      ...norm('v.post_ln'),
      ...Array.from({ length: layers }, (_, at) => block(at)).flat(),
      ...linear('mm.0', width, textWidth),
      ...linear('mm.2', textWidth, textWidth),
    ],
  )
}
