/** What decides the memory in the config.json of Llama 3.1 8B. */
export const llama8b = {
  model_type: 'llama',
  num_hidden_layers: 32,
  hidden_size: 4096,
  intermediate_size: 14_336,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  max_position_embeddings: 131_072,
  vocab_size: 128_256,
  torch_dtype: 'bfloat16',
}
