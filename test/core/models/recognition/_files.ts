/** The bytes of a safetensors file with these tensors (name and shape), without their data. */
export function safetensors(
  tensors: Readonly<Record<string, readonly number[]>>,
  metadata: Readonly<Record<string, string>> = {},
): Buffer {
  const entries = Object.entries(tensors).map(([name, shape]) => [name, { dtype: 'F16', shape, data_offsets: [0, 0] }])
  const header = Buffer.from(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header])
}

/** Tensors of well-known models, as many as recognition needs, with their real names and shapes. */
export const known = {
  sd15: {
    'model.diffusion_model.input_blocks.0.0.weight': [320, 4, 3, 3],
    'model.diffusion_model.input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight': [320, 768],
    'first_stage_model.decoder.conv_in.weight': [512, 4, 3, 3],
    'cond_stage_model.transformer.text_model.embeddings.token_embedding.weight': [49408, 768],
  },
  sd15Inpainting: {
    'model.diffusion_model.input_blocks.0.0.weight': [320, 9, 3, 3],
    'model.diffusion_model.input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight': [320, 768],
    'first_stage_model.decoder.conv_in.weight': [512, 4, 3, 3],
    'cond_stage_model.transformer.text_model.embeddings.token_embedding.weight': [49408, 768],
  },
  sd21: {
    'model.diffusion_model.input_blocks.0.0.weight': [320, 4, 3, 3],
    'model.diffusion_model.input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight': [320, 1024],
    'first_stage_model.decoder.conv_in.weight': [512, 4, 3, 3],
    'cond_stage_model.model.token_embedding.weight': [49408, 1024],
  },
  sdxl: {
    'model.diffusion_model.input_blocks.0.0.weight': [320, 4, 3, 3],
    'model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight': [640, 2048],
    'model.diffusion_model.label_emb.0.0.weight': [1280, 2816],
    'conditioner.embedders.0.transformer.text_model.embeddings.token_embedding.weight': [49408, 768],
    'conditioner.embedders.1.model.token_embedding.weight': [49408, 1280],
    'first_stage_model.decoder.conv_in.weight': [512, 4, 3, 3],
  },
  sd3Medium: {
    'model.diffusion_model.joint_blocks.0.context_block.attn.qkv.weight': [4608, 1536],
    'model.diffusion_model.x_embedder.proj.weight': [1536, 16, 2, 2],
    'first_stage_model.decoder.conv_in.weight': [512, 16, 3, 3],
  },
  fluxDev: {
    'double_blocks.0.img_attn.qkv.weight': [9216, 3072],
    'img_in.weight': [3072, 64],
    'guidance_in.in_layer.weight': [3072, 256],
    'single_blocks.0.linear1.weight': [21504, 3072],
  },
  fluxFill: {
    'double_blocks.0.img_attn.qkv.weight': [9216, 3072],
    'img_in.weight': [3072, 384],
  },
  flux2: {
    'double_blocks.0.img_attn.qkv.weight': [18432, 6144],
    'double_stream_modulation_img.lin.weight': [36864, 6144],
  },
  chroma: {
    'distilled_guidance_layer.in_proj.weight': [5120, 64],
    'double_blocks.0.img_attn.qkv.weight': [9216, 3072],
  },
  wan21T2v: {
    'blocks.0.cross_attn.norm_k.weight': [1536],
    'blocks.0.self_attn.q.weight': [1536, 1536],
    'patch_embedding.weight': [1536, 16, 1, 2, 2],
  },
  wan21I2v: {
    'blocks.0.cross_attn.norm_k.weight': [5120],
    'blocks.0.self_attn.q.weight': [5120, 5120],
    'patch_embedding.weight': [5120, 36, 1, 2, 2],
    'img_emb.proj.0.weight': [1280],
  },
  wan22I2v: {
    'model.diffusion_model.blocks.0.cross_attn.norm_k.weight': [5120],
    'model.diffusion_model.blocks.0.self_attn.q.weight': [5120, 5120],
    'model.diffusion_model.patch_embedding.weight': [5120, 36, 1, 2, 2],
  },
  wan22Ti2v: {
    'blocks.0.cross_attn.norm_k.weight': [3072],
    'blocks.0.self_attn.q.weight': [3072, 3072],
    'patch_embedding.weight': [3072, 48, 1, 2, 2],
  },
  qwenImage: {
    'transformer_blocks.0.img_mod.1.weight': [18432, 3072],
    'img_in.weight': [3072, 64],
  },
  zImage: {
    'cap_embedder.0.weight': [2560],
    'layers.0.attention.qkv.weight': [11520, 3840],
  },
  ltx: {
    'model.diffusion_model.adaln_single.emb.timestep_embedder.linear_1.weight': [2048, 256],
    'model.diffusion_model.patchify_proj.weight': [2048, 128],
    'vae.decoder.conv_in.conv.weight': [1024, 128, 3, 3, 3],
  },
  ltx2: {
    'adaln_single.emb.timestep_embedder.linear_1.bias': [4096],
    'audio_patchify_proj.weight': [2048, 128],
    'patchify_proj.weight': [4096, 128],
  },
  hunyuan: {
    'double_blocks.0.img_attn_qkv.weight': [9216, 3072],
    'txt_in.individual_token_refiner.blocks.0.adaLN_modulation.1.weight': [6144, 3072],
  },
} as const satisfies Record<string, Readonly<Record<string, readonly number[]>>>
